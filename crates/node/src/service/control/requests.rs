//! Requests of ControlService within their bounds. All mistakes of a request are reported together.

use std::sync::Arc;

use weir_config::{MAX_NUMBERS, check_pattern};
use weir_core::algorithm::MAX_LIMITS;
use weir_core::strategy::{MAX_NAME, Rules};
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::delete_entry_request::Entry as Deleted;
use weir_proto::v1::{
    AccessList, ChangeOptions, ControlAccess, ControlOverride, ControlStrategy, DeleteEntryRequest,
    PutAccessRequest, PutOverrideRequest, PutStrategyRequest, StateChange,
};
use weir_units::Micros;

use super::super::span;
use crate::access::Rights;
use crate::audit::named_caller;
use crate::control::{ChangeAsked, ControlFault, MAX_REASON, version_of};
use crate::limiter::shown;

/// The most changes that a history has.
pub(super) const MAX_HISTORY: u32 = 1_000;

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
        self.asked("PutOverride", Entry::Override(one), false, request.options)
    }

    pub(super) fn put_access(mut self, request: PutAccessRequest) -> Result<ChangeAsked, ControlFault> {
        let one = self.access(request.access.unwrap_or_default());
        self.asked("PutAccess", Entry::Access(one), false, request.options)
    }

    pub(super) fn put_strategy(mut self, request: PutStrategyRequest) -> Result<ChangeAsked, ControlFault> {
        let one = self.strategy(request.strategy.unwrap_or_default());
        self.limits(&one.limits);
        self.asked("PutStrategy", Entry::Strategy(one), false, request.options)
    }

    pub(super) fn delete(mut self, request: DeleteEntryRequest) -> Result<ChangeAsked, ControlFault> {
        let entry = match request.entry {
            Some(Deleted::Override(one)) => Entry::Override(self.overridden(one)?),
            Some(Deleted::Access(one)) => Entry::Access(self.access(one)),
            Some(Deleted::Strategy(one)) => Entry::Strategy(self.strategy(one)),
            None => {
                let reason = "entry is not set: name an override, an entry of an access list, or a strategy";
                return Err(ControlFault::Invalid(vec![reason.to_owned()]));
            }
        };
        if request.options.as_ref().is_some_and(|options| options.expires_after.is_some()) {
            self.mistakes.push("options.expires_after is set: a deletion has no end".to_owned());
        }
        self.asked("DeleteEntry", entry, true, request.options)
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

    fn asked(
        mut self,
        method: &'static str,
        entry: Entry,
        deletes: bool,
        options: Option<ChangeOptions>,
    ) -> Result<ChangeAsked, ControlFault> {
        let ChangeOptions { expires_after, reason, expect_version, dry_run } = options.unwrap_or_default();
        if reason.len() > MAX_REASON {
            let length = reason.len();
            self.mistakes
                .push(format!("options.reason has {length} bytes: it may have at most {MAX_REASON}"));
        }
        let expires_after = expires_after.and_then(|given| {
            let bound = format!("it must be {LEAST_EXPIRY} to {MOST_EXPIRY}");
            let read = span::micros("options.expires_after", &given, &bound);
            match read {
                Ok(span) if (LEAST_EXPIRY..=MOST_EXPIRY).contains(&span) => Some(span),
                Ok(span) => {
                    self.mistakes.push(format!("options.expires_after is {span}: {bound}"));
                    None
                }
                Err(error) => {
                    self.mistakes.push(error.to_string());
                    None
                }
            }
        });
        let expect = expect_version.as_ref().map(version_of);
        if expect == Some(None) {
            self.mistakes.push(
                "options.expect_version.change has other characters: it must be 16 hexadecimal digits"
                    .to_owned(),
            );
        }
        if !self.mistakes.is_empty() {
            return Err(ControlFault::Invalid(self.mistakes));
        }
        let resets = matches!(&entry, Entry::Strategy(one) if one.state() == StateChange::Reset);
        let expect = expect.flatten();
        let by = named_caller(self.rights.name());
        Ok(ChangeAsked { method, entry, deletes, resets, expires_after, reason, expect, dry_run, by })
    }
}
