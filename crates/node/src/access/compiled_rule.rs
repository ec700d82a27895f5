//! A rule as it is for one caller: rights, and the names that bound them.

use std::collections::HashSet;

use weir_config::{AccessRight, AuthorizeRule, ListEntry, RightSet, RuleList};
use weir_core::key::MAX_PART;

use super::names::CallerName;

/// A rule as it is for one caller.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) may: RightSet,
    /// By the number of the list; `None` is all names.
    lists: [Option<NameSet>; 5],
    /// Its line in the file.
    pub(super) line: usize,
}

/// What the lists of a rule are about. A rule whose lists are all about something else allows nothing of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleTarget {
    Decisions,
    Queues,
    EnvoyDomains,
}

/// Names and prefixes.
#[derive(Debug, Default)]
struct NameSet {
    exact: HashSet<Box<str>, foldhash::fast::RandomState>,
    /// Sorted, and none begins with another: at most one can fit, the last that is not greater.
    prefixes: Vec<Box<str>>,
}

impl CompiledRule {
    pub(super) fn all_but_control() -> Self {
        Self { may: RightSet::ALL.without(AccessRight::Control), lists: Default::default(), line: 0 }
    }

    pub(super) fn of(rule: &AuthorizeRule, name: &CallerName) -> Self {
        let AuthorizeRule { may, resources, strategies, consumers, queues, envoy_domains, line, .. } = rule;
        let lists = [resources, strategies, consumers, queues, envoy_domains];
        let lists = lists.map(|list| list.as_ref().map(|entries| NameSet::of(entries, name)));
        Self { may: *may, lists, line: *line }
    }

    /// True if none of its lists bounds anything.
    pub(super) fn is_unbounded(&self) -> bool {
        self.lists.iter().all(Option::is_none)
    }

    /// True if it has this list.
    pub(super) fn has(&self, list: RuleList) -> bool {
        self.lists[list as usize].is_some()
    }

    /// True if the list has this name, or the rule has no such list.
    pub(super) fn lists(&self, list: RuleList, name: &str) -> bool {
        self.lists[list as usize].as_ref().is_none_or(|names| names.has(name))
    }

    /// True if the rule is about such targets.
    pub(super) fn is_about(&self, target: RuleTarget) -> bool {
        let lists: &[RuleList] = match target {
            RuleTarget::Decisions => &[RuleList::Resources, RuleList::Strategies, RuleList::Consumers],
            RuleTarget::Queues => &[RuleList::Queues],
            RuleTarget::EnvoyDomains => &[RuleList::EnvoyDomains],
        };
        self.is_unbounded() || lists.iter().any(|list| self.has(*list))
    }
}

impl NameSet {
    fn of(entries: &[ListEntry], caller: &CallerName) -> Self {
        let mut set = Self::default();
        for entry in entries {
            match entry {
                ListEntry::Exact(name) => drop(set.exact.insert(name.clone())),
                ListEntry::Prefix(prefix) => set.prefixes.push(prefix.clone()),
                // A longer name cannot be a consumer.
                ListEntry::Caller => {
                    set.exact.extend(caller.all().filter(|name| name.len() <= MAX_PART).map(Into::into));
                }
            }
        }
        set.prefixes.sort_unstable();
        let mut kept: Vec<Box<str>> = Vec::new();
        for prefix in set.prefixes {
            if !kept.last().is_some_and(|last| prefix.starts_with(&**last)) {
                kept.push(prefix);
            }
        }
        Self { prefixes: kept, ..set }
    }

    fn has(&self, name: &str) -> bool {
        let after = self.prefixes.partition_point(|prefix| **prefix <= *name);
        let prefix = after.checked_sub(1).and_then(|last| self.prefixes.get(last));
        prefix.is_some_and(|prefix| name.starts_with(&**prefix)) || self.exact.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_prefixes_the_shortest_decides() {
        let entries = ["b", "ab", "a", "abc", "c/"].map(|prefix| ListEntry::Prefix(prefix.into()));
        let set = NameSet::of(&entries, &CallerName::one("x"));
        assert_eq!(set.prefixes.iter().map(|prefix| &**prefix).collect::<Vec<_>>(), ["a", "b", "c/"]);
        for (name, has) in
            [("abc", true), ("a", true), ("b", true), ("c", false), ("c/d", true), ("", false), ("zz", false)]
        {
            assert_eq!(set.has(name), has, "{name}");
        }
        let all = NameSet::of(
            &[ListEntry::Prefix("".into()), ListEntry::Prefix("x".into())],
            &CallerName::one("x"),
        );
        assert!(all.has("") && all.has("anything"));
    }

    #[test]
    fn the_callers_own_name_is_no_pattern() {
        let set = NameSet::of(&[ListEntry::Caller], &CallerName::one("dns:*"));
        assert!(set.has("dns:*") && !set.has("dns:x"));
        let long = CallerName::one(&format!("spiffe://prod/{}", "x".repeat(MAX_PART)));
        assert!(NameSet::of(&[ListEntry::Caller], &long).exact.is_empty());
    }
}
