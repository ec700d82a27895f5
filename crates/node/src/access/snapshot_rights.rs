//! The rules of `authorize` as a part of the snapshot: a call is judged by the rules that came with its limits.

use std::sync::Arc;

use weir_grpc::CallContext;

use super::authenticated::Authenticated;
use super::rights::Rights;
use super::rules::AccessRules;

/// The rules of `authorize` of one snapshot.
#[derive(Debug, Clone, Default)]
pub struct SnapshotRights(
    /// `None`: the server has no identity, or the snapshot came from no files, and the current rules apply.
    Option<Arc<AccessRules>>,
);

impl SnapshotRights {
    pub(super) const fn new(rules: Arc<AccessRules>) -> Self {
        Self(Some(rules))
    }

    pub(super) const fn rules(&self) -> Option<&Arc<AccessRules>> {
        self.0.as_ref()
    }

    /// The rights of a call's caller.
    #[inline]
    pub fn of<'a>(&self, context: &'a CallContext) -> Rights<'a> {
        let Some(caller) = &context.caller else { return Rights::ALL };
        match (caller.get::<Authenticated>(), &self.0) {
            (Some(caller), Some(rules)) => Rights::known(caller.rights_under(rules)),
            _ => Rights::from_context(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_config::{AccessRight, Config, ConfigOverrides};
    use weir_grpc::Caller;
    use weir_time::clock::Clock;

    use super::*;
    use crate::access::names::CallerName;
    use crate::access::proof::Proof;
    use crate::access::{CallerAccess, NamedFields};

    const STRATEGY: &str =
        "strategies: { s: { limits: [{ name: l, per: [], uniform: { interval: 1s } }] } }\n";

    fn config(resource: &str) -> Config {
        let rules = format!("[{{ callers: [anonymous], may: [decide], resources: [{resource}] }}]");
        let text = format!("authorize: {rules}\n{STRATEGY}");
        Config::parse(&text, "rights", &ConfigOverrides::default()).unwrap()
    }

    fn context(access: &Arc<CallerAccess>) -> CallContext {
        let anonymous = Proof::of_connection(CallerName::one(CallerName::ANONYMOUS));
        let caller = Some(Caller::new(Authenticated::new(access, anonymous, 0)));
        CallContext { caller, ..CallContext::default() }
    }

    fn allows(rights: &SnapshotRights, context: &CallContext) -> [bool; 2] {
        ["a", "b"].map(|resource| {
            let named = NamedFields { resource, consumer: "bob", strategy: "s", inline: false };
            rights.of(context).check(AccessRight::Decide, named, |_| None).is_ok()
        })
    }

    /// Limits and rights of a file were replaced one after the other, and a call between them saw parts of two files.
    #[test]
    fn a_call_is_judged_by_the_rules_of_its_snapshot_whichever_are_current() {
        let access = CallerAccess::from_config(&config("a"), Clock::System, Arc::default()).unwrap().unwrap();
        let before = access.snapshot_rights();
        let after = access.next_rules(config("b").authorize.as_deref()).unwrap();
        let called_before = context(&access);
        let agrees = |called: &CallContext| {
            assert_eq!(allows(&before, called), [true, false]);
            assert_eq!(allows(&after, called), [false, true]);
            assert_eq!(allows(&before, called), [true, false], "a worker that has not changed yet");
        };
        agrees(&called_before);
        assert_eq!(allows(&SnapshotRights::default(), &called_before), [true, false], "the current rules");
        access.set_rules(&after);
        agrees(&called_before);
        agrees(&context(&access));
        assert_eq!(allows(&SnapshotRights::default(), &called_before), [false, true], "the current rules");
    }
}
