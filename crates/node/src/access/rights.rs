//! The rights of one caller, and the check of a question.

use std::sync::{Arc, LazyLock};

use weir_config::{AccessRight, RightSet, RuleList};
use weir_grpc::CallContext;

use super::authenticated::Authenticated;
use super::names::CallerName;
use super::refusals::{AccessMetrics, RefusalReason, Refused};
use super::rules::{CompiledRule, RuleTarget};

/// The strategy of an inline limit, for the lists of rules.
const INLINE: &str = "inline";

/// The rights of a question's caller. There is no default: whoever makes a question says whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Rights<'a>(
    /// `None` is everybody: the server has no identity, or the question is its own.
    Option<&'a CallerRights>,
);

/// A caller of another kind than ours. Unreachable, and refused.
static NOBODY: LazyLock<CallerRights> =
    LazyLock::new(|| CallerRights::new(CallerName::one(CallerName::ANONYMOUS), Vec::new(), Arc::default()));

/// The compiled rules of one caller.
#[derive(Debug)]
pub struct CallerRights {
    name: CallerName,
    /// Rights of rules without lists.
    unbounded: RightSet,
    /// Rights of any rule.
    any: RightSet,
    rules: Box<[CompiledRule]>,
    metrics: Arc<AccessMetrics>,
}

/// Which rule allows something, or why none does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explained {
    /// The rule in this line of the file. Line 0 is no rule: there is no section `authorize`.
    AllowedBy(usize),
    /// No rule names the caller.
    NoRule,
    /// Rules name the caller, but none has the right.
    NoRight,
    /// The lists of the rules in these lines leave it out.
    NotListed(Vec<usize>),
}

/// What a question about decisions names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedFields<'a> {
    pub(crate) resource: &'a str,
    pub(crate) consumer: &'a str,
    /// As the question names it: empty for the resource's own.
    pub(crate) strategy: &'a str,
    pub(crate) inline: bool,
}

impl<'a> Rights<'a> {
    /// All rights: for servers without identity, and for questions of this process itself.
    pub const ALL: Rights<'static> = Rights(None);

    /// Returns the rights of a call. A server with identity has checked it, and one without has not.
    #[inline]
    #[must_use]
    pub fn of(context: &'a CallContext) -> Self {
        Self(
            context
                .caller
                .as_ref()
                .map(|caller| caller.get().map_or_else(|| &*NOBODY, Authenticated::rights)),
        )
    }

    /// Returns the rights of a known caller.
    #[must_use]
    pub const fn known(rights: &'a CallerRights) -> Self {
        Self(Some(rights))
    }

    /// The name for logs; empty on servers without identity.
    pub(crate) fn name(self) -> &'a str {
        self.0.map_or("", |rights| rights.name.shown())
    }

    /// True if everything is allowed, so that no check is needed.
    #[inline]
    pub(crate) const fn is_all(self) -> bool {
        self.0.is_none()
    }

    /// Checks a right on what a question names. `strategy_of` finds the strategy of the resource.
    pub(crate) fn check<'s>(
        self,
        right: AccessRight,
        named: NamedFields<'_>,
        strategy_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> Result<(), Refused> {
        self.decide(|rights| rights.may(right, named, strategy_of), right)
    }

    /// Checks one of several rights on a queue.
    pub(crate) fn check_queue(self, rights: &[AccessRight], queue: &str) -> Result<(), Refused> {
        let may = |known: &CallerRights| rights.iter().any(|right| known.may_queue(*right, queue));
        self.decide(may, rights.first().copied().unwrap_or(AccessRight::Take))
    }

    /// Checks the right to ask for a domain of Envoy's, and to give back hits of it.
    pub(crate) fn check_domain(self, domain: &str, gives_back: bool) -> Result<(), Refused> {
        self.decide(|rights| rights.may_envoy(domain, gives_back), AccessRight::Envoy)
    }

    /// Checks that the caller has a right at all.
    pub(crate) fn check_any(self, right: AccessRight) -> Result<(), Refused> {
        self.decide(|rights| rights.any.has(right), right)
    }

    /// True if an answer of statistics may have this name. `None` is what the row does not name.
    pub(crate) fn may_show(self, strategy: &str, resource: Option<&str>, consumer: Option<&str>) -> bool {
        self.0.is_none_or(|rights| rights.may_show(strategy, resource, consumer))
    }

    #[inline]
    fn decide(self, may: impl FnOnce(&CallerRights) -> bool, right: AccessRight) -> Result<(), Refused> {
        match self.0 {
            Some(rights) if !may(rights) => Err(rights.refuse(right.row().name)),
            _ => Ok(()),
        }
    }
}

impl CallerRights {
    pub(super) fn new(name: CallerName, rules: Vec<CompiledRule>, metrics: Arc<AccessMetrics>) -> Self {
        let union = |all: RightSet, rule: &CompiledRule| all.and(rule.may);
        let unbounded = rules.iter().filter(|rule| rule.is_unbounded()).fold(RightSet::default(), union);
        let any = rules.iter().fold(RightSet::default(), union);
        Self { name, unbounded, any, rules: rules.into(), metrics }
    }

    /// The caller's name.
    #[must_use]
    pub fn name(&self) -> &CallerName {
        &self.name
    }

    /// The rights that any rule gives.
    pub(crate) fn any(&self) -> RightSet {
        self.any
    }

    /// Counts and logs a refusal. Callers without a credential learn that they need one.
    #[cold]
    pub(crate) fn refuse(&self, what: &str) -> Refused {
        let reason = if self.name.is_anonymous() { RefusalReason::Anonymous } else { RefusalReason::Rights };
        self.metrics.refuse(reason, self.name.shown(), what)
    }

    fn may<'s>(
        &self,
        right: AccessRight,
        named: NamedFields<'_>,
        strategy_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> bool {
        let is_needed = |needed: AccessRight| self.unbounded.has(needed);
        if is_needed(right) && (!named.inline || is_needed(AccessRight::Inline)) {
            return true;
        }
        let strategy = match (named.inline, named.strategy) {
            (true, _) => INLINE,
            (false, "")
                if self.rules.iter().any(|rule| rule.may.has(right) && rule.has(RuleList::Strategies)) =>
            {
                match strategy_of(named.resource) {
                    Some(strategy) => strategy,
                    None => return false,
                }
            }
            (false, strategy) => strategy,
        };
        self.allows(right, named, strategy) && (!named.inline || self.allows_inline(named))
    }

    fn allows(&self, right: AccessRight, named: NamedFields<'_>, strategy: &str) -> bool {
        self.rule_that_allows(right, named, strategy).is_some()
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

    fn may_queue(&self, right: AccessRight, queue: &str) -> bool {
        let fits = |rule: &CompiledRule| {
            rule.may.has(right) && rule.is_about(RuleTarget::Queues) && rule.lists(RuleList::Queues, queue)
        };
        self.unbounded.has(right) || self.rules.iter().any(fits)
    }

    fn may_envoy(&self, domain: &str, gives_back: bool) -> bool {
        self.rules.iter().any(|rule| {
            rule.may.has(AccessRight::Envoy)
                && (!gives_back || rule.may.has(AccessRight::Refund))
                && rule.is_about(RuleTarget::EnvoyDomains)
                && rule.lists(RuleList::EnvoyDomains, domain)
        })
    }

    /// A row that does not name a field may count what the field's list leaves out, so the list must be absent.
    fn may_show(&self, strategy: &str, resource: Option<&str>, consumer: Option<&str>) -> bool {
        let fits = |rule: &CompiledRule, list, name: Option<&str>| match name {
            Some(name) => rule.lists(list, name),
            None => !rule.has(list),
        };
        self.rules.iter().any(|rule| {
            rule.may.has(AccessRight::Usage)
                && rule.is_about(RuleTarget::Decisions)
                && rule.lists(RuleList::Strategies, strategy)
                && fits(rule, RuleList::Resources, resource)
                && fits(rule, RuleList::Consumers, consumer)
        })
    }

    /// Explains whether the caller may ask for a decision. `strategy` is the one that would apply.
    #[must_use]
    pub fn explain(&self, right: AccessRight, resource: &str, consumer: &str, strategy: &str) -> Explained {
        if self.rules.is_empty() {
            return Explained::NoRule;
        }
        let named = NamedFields { resource, consumer, strategy, inline: false };
        match self.rule_that_allows(right, named, strategy) {
            Some(rule) => Explained::AllowedBy(rule.line),
            None if !self.any.has(right) => Explained::NoRight,
            None => {
                let with_right = self.rules.iter().filter(|rule| rule.may.has(right));
                Explained::NotListed(with_right.map(|rule| rule.line).collect())
            }
        }
    }
}
