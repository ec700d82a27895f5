//! Requests of ControlService within their bounds. All mistakes of a request are reported together.

use std::sync::Arc;

use weir_config::{MAX_NUMBERS, check_pattern};
use weir_core::algorithm::MAX_LIMITS;
use weir_core::strategy::{MAX_NAME, Rules};
use weir_node::access::Rights;
use weir_node::audit::named_caller;
use weir_node::limiter::shown;
use weir_node::service::micros;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::delete_entry_request::Entry as Deleted;
use weir_proto::v1::entry_put::Entry as Put;
use weir_proto::v1::{
    AccessList, ChangeOptions, ControlAccess, ControlOverride, ControlStrategy, DeleteEntryRequest, EntryPut,
    PutAccessRequest, PutManyRequest, PutOverrideRequest, PutStrategyRequest, StateChange,
};
use weir_units::Micros;

use crate::model::MAX_PUT_TOGETHER;
use crate::task::{ChangeAsked, ControlFault, EntryAsked, MAX_REASON, change_of, version_of};

/// The most changes that a history has.
pub(super) const MAX_HISTORY: u32 = 1_000;

/// Mistakes of several changes that are named.
const MAX_MISTAKES: usize = 20;

const DIGITS: &str = "has other characters: it must be 16 hexadecimal digits";

const LEAST_EXPIRY: Micros = Micros::from_secs(1);
const MOST_EXPIRY: Micros = Micros::from_secs(10 * 366 * 86_400);

/// Reads the requests of one caller.
pub(super) struct ControlRequests<'a> {
    rules: Arc<Rules>,
    rights: Rights<'a>,
    mistakes: Vec<String>,
}

impl<'a> ControlRequests<'a> {
    pub(super) fn new(rules: Arc<Rules>, rights: Rights<'a>) -> Self {
        Self { rules, rights, mistakes: Vec::new() }
    }

    pub(super) fn put_override(mut self, request: PutOverrideRequest) -> Result<ChangeAsked, ControlFault> {
        let one = self.overridden(request.r#override.unwrap_or_default())?;
        self.limits(&one.limits);
        self.asked_one("PutOverride", Entry::Override(one), false, request.options)
    }

    pub(super) fn put_access(mut self, request: PutAccessRequest) -> Result<ChangeAsked, ControlFault> {
        let one = self.access(request.access.unwrap_or_default());
        self.asked_one("PutAccess", Entry::Access(one), false, request.options)
    }

    pub(super) fn put_strategy(mut self, request: PutStrategyRequest) -> Result<ChangeAsked, ControlFault> {
        let one = self.strategy(request.strategy.unwrap_or_default());
        self.limits(&one.limits);
        self.asked_one("PutStrategy", Entry::Strategy(one), false, request.options)
    }

    pub(super) fn delete(mut self, request: DeleteEntryRequest) -> Result<ChangeAsked, ControlFault> {
        let entry = match request.entry {
            Some(Deleted::Override(one)) => Entry::Override(self.overridden(one)?),
            Some(Deleted::Access(one)) => Entry::Access(self.access(one)),
            Some(Deleted::Strategy(one)) => Entry::Strategy(self.strategy(one)),
            None => return Err(no_entry()),
        };
        if request.options.as_ref().is_some_and(|options| options.expires_after.is_some()) {
            self.mistakes.push("options.expires_after is set: a deletion has no end".to_owned());
        }
        self.asked_one("DeleteEntry", entry, true, request.options)
    }

    pub(super) fn put_many(mut self, request: PutManyRequest) -> Result<ChangeAsked, ControlFault> {
        let PutManyRequest { changes, options } = request;
        let count = changes.len();
        if !(1..=MAX_PUT_TOGETHER).contains(&count) {
            self.mistakes.push(format!("changes has {count} entries: it must have 1 to {MAX_PUT_TOGETHER}"));
            return Err(ControlFault::Invalid(self.mistakes));
        }
        if options.as_ref().is_some_and(|options| options.expect_version.is_some()) {
            self.mistakes.push("options.expect_version is set: each change has its own".to_owned());
        }
        let mut entries = Vec::with_capacity(count);
        for (place, change) in changes.into_iter().enumerate() {
            let before = self.mistakes.len();
            let named = |fault| ControlFault::Entry { place, fault: Box::new(fault) };
            entries.push(self.entry_put(change).map_err(named)?);
            for mistake in self.mistakes.iter_mut().skip(before) {
                *mistake = format!("changes[{place}].{mistake}");
            }
            if self.mistakes.len() > MAX_MISTAKES {
                break;
            }
        }
        self.asked("PutMany", entries, options)
    }

    fn entry_put(&mut self, change: EntryPut) -> Result<EntryAsked, ControlFault> {
        let EntryPut { entry, deletes, expect_version } = change;
        let entry = match entry {
            Some(Put::Override(one)) => Entry::Override(self.overridden(one)?),
            Some(Put::Access(one)) => Entry::Access(self.access(one)),
            Some(Put::Strategy(one)) => Entry::Strategy(self.strategy(one)),
            None => return Err(no_entry()),
        };
        if let (
            Entry::Override(ControlOverride { limits, .. }) | Entry::Strategy(ControlStrategy { limits, .. }),
            false,
        ) = (&entry, deletes)
        {
            self.limits(limits);
        }
        let expect = expect_version.as_ref().map(version_of);
        if expect == Some(None) {
            self.mistakes.push(format!("expect_version.change {DIGITS}"));
        }
        Ok(EntryAsked { resets: resets(&entry), entry, deletes, expect: expect.flatten() })
    }

    /// An override without an empty name: its strategy is found by its resource.
    fn overridden(&mut self, one: ControlOverride) -> Result<ControlOverride, ControlFault> {
        self.pattern("override.consumer", &one.consumer);
        let resource = if one.resource.is_empty() { "*".to_owned() } else { one.resource };
        self.pattern("override.resource", &resource);
        self.name("override.strategy", &one.strategy);
        let mut strategy = one.strategy;
        if strategy.is_empty() && self.mistakes.is_empty() {
            let name = resource.strip_suffix('*').unwrap_or(&resource);
            strategy = self.rules.resolve(name, "")?.strategy.name().to_owned();
        }
        Ok(ControlOverride { consumer: one.consumer, resource, strategy, limits: one.limits })
    }

    fn access(&mut self, one: ControlAccess) -> ControlAccess {
        self.pattern("access.consumer", &one.consumer);
        self.name("access.strategy", &one.strategy);
        if !matches!(AccessList::try_from(one.list), Ok(AccessList::Deny | AccessList::Allow)) {
            self.mistakes.push(format!("access.list is {}: it must be 1 (DENY) or 2 (ALLOW)", one.list));
        }
        one
    }

    fn strategy(&mut self, one: ControlStrategy) -> ControlStrategy {
        if one.strategy.is_empty() {
            self.mistakes.push(format!("strategy.strategy is empty: it must be 1 to {MAX_NAME} bytes"));
        }
        self.name("strategy.strategy", &one.strategy);
        if StateChange::try_from(one.state).is_err() {
            self.mistakes.push(format!("strategy.state is {}: it must be 1 (AS_IS) or 2 (RESET)", one.state));
        }
        one
    }

    fn limits(&mut self, limits: &std::collections::HashMap<String, String>) {
        if !(1..=MAX_LIMITS).contains(&limits.len()) {
            self.mistakes
                .push(format!("limits has {} entries: it must have 1 to {MAX_LIMITS}", limits.len()));
            return;
        }
        for (name, text) in limits {
            self.name("limits", name);
            if text.len() > MAX_NUMBERS {
                let name = shown(name);
                self.mistakes.push(format!("limits.{name} has {} bytes: at most {MAX_NUMBERS}", text.len()));
            }
        }
    }

    fn pattern(&mut self, field: &str, text: &str) {
        if let Err(reason) = check_pattern(text) {
            self.mistakes.push(format!("{field}: {reason}"));
        }
    }

    fn name(&mut self, field: &str, name: &str) {
        if name.len() > MAX_NAME {
            let (name, length) = (shown(name), name.len());
            self.mistakes.push(format!("{field} is {name}: it has {length} bytes and at most {MAX_NAME}"));
        }
    }

    fn asked_one(
        mut self,
        method: &'static str,
        entry: Entry,
        deletes: bool,
        options: Option<ChangeOptions>,
    ) -> Result<ChangeAsked, ControlFault> {
        let expect = options.as_ref().and_then(|options| options.expect_version.as_ref()).map(version_of);
        if expect == Some(None) {
            self.mistakes.push(format!("options.expect_version.change {DIGITS}"));
        }
        let one = EntryAsked { resets: resets(&entry), entry, deletes, expect: expect.flatten() };
        self.asked(method, vec![one], options)
    }

    fn asked(
        mut self,
        method: &'static str,
        entries: Vec<EntryAsked>,
        options: Option<ChangeOptions>,
    ) -> Result<ChangeAsked, ControlFault> {
        let ChangeOptions { expires_after, reason, dry_run, change, .. } = options.unwrap_or_default();
        if reason.len() > MAX_REASON {
            let length = reason.len();
            self.mistakes
                .push(format!("options.reason has {length} bytes: it may have at most {MAX_REASON}"));
        }
        let expires_after = expires_after.and_then(|given| self.expiry(&given));
        let id = change_of(&change);
        if id.is_none() || (id == Some(0) && !change.is_empty()) {
            self.mistakes.push(format!("options.change {DIGITS}, and not 0"));
        }
        if !self.mistakes.is_empty() {
            return Err(ControlFault::Invalid(self.mistakes));
        }
        let by = named_caller(self.rights.name());
        let id = id.filter(|id| *id != 0);
        Ok(ChangeAsked { method, entries, expires_after, reason, id, dry_run, by })
    }

    fn expiry(&mut self, given: &prost_types::Duration) -> Option<Micros> {
        let bound = format!("it must be {LEAST_EXPIRY} to {MOST_EXPIRY}");
        match micros("options.expires_after", given, &bound) {
            Ok(span) if (LEAST_EXPIRY..=MOST_EXPIRY).contains(&span) => return Some(span),
            Ok(span) => self.mistakes.push(format!("options.expires_after is {span}: {bound}")),
            Err(error) => self.mistakes.push(error.to_string()),
        }
        None
    }
}

/// True if all states of the strategy start full.
fn resets(entry: &Entry) -> bool {
    matches!(entry, Entry::Strategy(one) if one.state() == StateChange::Reset)
}

fn no_entry() -> ControlFault {
    let reason = "entry is not set: name an override, an entry of an access list, or a strategy";
    ControlFault::Invalid(vec![reason.to_owned()])
}
