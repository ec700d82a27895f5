//! A rule as it is for one caller: rights, and the names that bound them.

use weir_config::{AccessRight, AuthorizeRule, Position, RightSet, RuleList};

use super::name_set::NameSet;
use super::names::CallerName;

/// A rule as it is for one caller.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) may: RightSet,
    /// By the number of the list; `None` is all names.
    lists: [Option<NameSet>; 5],
    /// By the number of the target.
    is_about: [bool; 3],
    /// The place in the files; the default for no rule.
    pub(super) place: Position,
}

/// The kind of target that the lists of a rule bound. A rule whose lists are all about something else allows nothing of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleTarget {
    Decisions,
    Queues,
    EnvoyDomains,
}

impl CompiledRule {
    pub(super) fn all_but_control() -> Self {
        let may = RightSet::ALL.without(AccessRight::Control);
        Self { may, lists: Default::default(), is_about: [true; 3], place: Position::default() }
    }

    pub(super) fn new(rule: &AuthorizeRule, name: &CallerName) -> Self {
        let AuthorizeRule { may, resources, strategies, consumers, queues, envoy_domains, place, .. } = rule;
        let lists = [resources, strategies, consumers, queues, envoy_domains];
        let lists = lists.map(|list| list.as_ref().map(|entries| NameSet::new(entries, name)));
        let unbounded = lists.iter().all(Option::is_none);
        let is_about = RuleTarget::ALL
            .map(|target| unbounded || target.lists().iter().any(|list| lists[*list as usize].is_some()));
        Self { may: *may, lists, is_about, place: *place }
    }

    /// True if none of its lists bounds anything.
    pub(super) fn is_unbounded(&self) -> bool {
        self.lists.iter().all(Option::is_none)
    }

    pub(super) fn has(&self, list: RuleList) -> bool {
        self.lists[list as usize].is_some()
    }

    /// True if the list has this name, or the rule has no such list.
    #[inline]
    pub(super) fn lists(&self, list: RuleList, name: &str) -> bool {
        self.lists[list as usize].as_ref().is_none_or(|names| names.has(name))
    }

    pub(super) fn is_about(&self, target: RuleTarget) -> bool {
        self.is_about[target as usize]
    }
}

impl RuleTarget {
    const ALL: [Self; 3] = [Self::Decisions, Self::Queues, Self::EnvoyDomains];

    /// The lists that are about such targets.
    const fn lists(self) -> &'static [RuleList] {
        match self {
            Self::Decisions => &[RuleList::Resources, RuleList::Strategies, RuleList::Consumers],
            Self::Queues => &[RuleList::Queues],
            Self::EnvoyDomains => &[RuleList::EnvoyDomains],
        }
    }
}
