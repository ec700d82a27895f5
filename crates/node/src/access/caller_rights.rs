//! The compiled rules of one caller: what they allow, and which of them does.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::FixedState;
use weir_config::{AccessRight, Position, RightSet, RuleList};

use super::compiled_rule::{CompiledRule, RuleTarget};
use super::names::CallerName;
use super::refusals::{AccessMetrics, RefusalReason, Refused};
use crate::audit::named_caller;

/// The strategy of an inline limit, for the lists of rules.
const INLINE: &str = "inline";

/// The compiled rules of one caller.
#[derive(Debug)]
pub struct CallerRights {
    name: CallerName,
    /// A number of the name, to tell callers apart; none of the anonymous ones.
    number: Option<u32>,
    /// Rights of rules without lists.
    unbounded: RightSet,
    any: RightSet,
    rules: Box<[CompiledRule]>,
    metrics: Arc<AccessMetrics>,
}

/// The rule that allows something, or the reason that none does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explained {
    /// The rule at this place of the files. The default place is no rule: there is no section `authorize`.
    AllowedBy(Position),
    /// No rule names the caller.
    NoRule,
    /// Rules name the caller, but none has the right.
    NoRight,
    /// The lists of the rules at these places leave it out.
    NotListed(Vec<Position>),
}

/// The fields of a question that rules match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedFields<'a> {
    pub(crate) resource: &'a str,
    pub(crate) consumer: &'a str,
    /// The strategy as the question names it: empty for the resource's own.
    pub(crate) strategy: &'a str,
    pub(crate) inline: bool,
}

/// A hash of a name, with a bit that no number of a connection has.
fn number_of(name: &str) -> u32 {
    let hash = FixedState::default().hash_one(name);
    hash as u32 | 1 << 31
}

impl CallerRights {
    pub(super) fn new(name: CallerName, rules: Vec<CompiledRule>, metrics: Arc<AccessMetrics>) -> Self {
        let union = |all: RightSet, rule: &CompiledRule| all.and(rule.may);
        let unbounded = rules.iter().filter(|rule| rule.is_unbounded()).fold(RightSet::default(), union);
        let any = rules.iter().fold(RightSet::default(), union);
        let number = (!name.is_anonymous()).then(|| number_of(name.shown()));
        Self { number, name, unbounded, any, rules: rules.into(), metrics }
    }

    /// The caller's name.
    pub fn name(&self) -> &CallerName {
        &self.name
    }

    /// The number of the name; none of anonymous callers.
    pub(crate) fn number(&self) -> Option<u32> {
        self.number
    }

    pub(crate) fn any(&self) -> RightSet {
        self.any
    }

    /// The rights that rules without lists give.
    pub(crate) fn unbounded(&self) -> RightSet {
        self.unbounded
    }

    /// Counts and logs a refusal. Callers without a credential learn that they need one.
    #[cold]
    pub(crate) fn refuse(&self, what: &str) -> Refused {
        if self.name.is_anonymous() {
            // Callers without a name are told apart by their addresses.
            let peer = named_caller("");
            let shown = if peer.is_empty() { self.name.shown() } else { &peer };
            return self.metrics.refuse(RefusalReason::Anonymous, shown, what);
        }
        self.metrics.refuse(RefusalReason::Rights, self.name.shown(), what)
    }

    pub(super) fn may<'s>(
        &self,
        right: AccessRight,
        named: NamedFields<'_>,
        strategy_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> bool {
        let is_needed = |needed: AccessRight| self.unbounded.has(needed);
        if is_needed(right) && (!named.inline || is_needed(AccessRight::Inline)) {
            return true;
        }
        self.rule_for(right, named, strategy_of).is_some() && (!named.inline || self.allows_inline(named))
    }

    /// Returns a rule that allows a right, if there is one. Numbers in a request need `inline` besides.
    pub(super) fn rule_for<'s>(
        &self,
        right: AccessRight,
        named: NamedFields<'_>,
        strategy_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> Option<&CompiledRule> {
        let strategy = match (named.inline, named.strategy) {
            (true, _) => INLINE,
            (false, "")
                if self.rules.iter().any(|rule| rule.may.has(right) && rule.has(RuleList::Strategies)) =>
            {
                strategy_of(named.resource)?
            }
            (false, strategy) => strategy,
        };
        self.rule_that_allows(right, named, strategy)
    }

    fn rule_that_allows(
        &self,
        right: AccessRight,
        named: NamedFields<'_>,
        strategy: &str,
    ) -> Option<&CompiledRule> {
        self.rules.iter().find(|rule| {
            rule.may.has(right)
                && rule.is_about(RuleTarget::Decisions)
                && rule.lists(RuleList::Resources, named.resource)
                && rule.lists(RuleList::Consumers, named.consumer)
                && rule.lists(RuleList::Strategies, strategy)
        })
    }

    fn allows_inline(&self, named: NamedFields<'_>) -> bool {
        self.rules.iter().any(|rule| {
            rule.may.has(AccessRight::Inline)
                && (rule.is_unbounded() || rule.has(RuleList::Resources) || rule.has(RuleList::Consumers))
                && rule.lists(RuleList::Resources, named.resource)
                && rule.lists(RuleList::Consumers, named.consumer)
        })
    }

    pub(super) fn may_queue(&self, right: AccessRight, queue: &str) -> bool {
        let fits = |rule: &CompiledRule| {
            rule.may.has(right) && rule.is_about(RuleTarget::Queues) && rule.lists(RuleList::Queues, queue)
        };
        self.unbounded.has(right) || self.rules.iter().any(fits)
    }

    pub(super) fn may_envoy(&self, domain: &str, gives_back: bool) -> bool {
        self.rules.iter().any(|rule| {
            rule.may.has(AccessRight::Envoy)
                && (!gives_back || rule.may.has(AccessRight::Refund))
                && rule.is_about(RuleTarget::EnvoyDomains)
                && rule.lists(RuleList::EnvoyDomains, domain)
        })
    }

    /// True if an answer may have this name under a right. A row that does not name a field may count what the field's list
    /// leaves out, so the list must be absent.
    pub(super) fn may_show(
        &self,
        right: AccessRight,
        strategy: &str,
        resource: Option<&str>,
        consumer: Option<&str>,
    ) -> bool {
        let fits = |rule: &CompiledRule, list, name: Option<&str>| match name {
            Some(name) => rule.lists(list, name),
            None => !rule.has(list),
        };
        self.rules.iter().any(|rule| {
            rule.may.has(right)
                && rule.is_about(RuleTarget::Decisions)
                && rule.lists(RuleList::Strategies, strategy)
                && fits(rule, RuleList::Resources, resource)
                && fits(rule, RuleList::Consumers, consumer)
        })
    }

    /// Explains whether the caller may ask for a decision. `strategy` is the one that would apply.
    pub fn explain(&self, right: AccessRight, resource: &str, consumer: &str, strategy: &str) -> Explained {
        if self.rules.is_empty() {
            return Explained::NoRule;
        }
        let named = NamedFields { resource, consumer, strategy, inline: false };
        match self.rule_that_allows(right, named, strategy) {
            Some(rule) => Explained::AllowedBy(rule.place),
            None if !self.any.has(right) => Explained::NoRight,
            None => {
                let with_right = self.rules.iter().filter(|rule| rule.may.has(right));
                Explained::NotListed(with_right.map(|rule| rule.place).collect())
            }
        }
    }
}
