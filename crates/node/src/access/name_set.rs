//! The names of one list of a rule.

use std::collections::HashSet;

use weir_config::ListEntry;
use weir_core::key::MAX_PART;

use super::names::CallerName;

/// Up to so many names are compared one by one, which costs less than a hash.
const FEW: usize = 4;

#[derive(Debug)]
pub(super) struct NameSet {
    exact: ExactNames,
    /// Sorted, and none begins with another: at most one can fit, the last that is not greater.
    prefixes: Vec<Box<str>>,
}

#[derive(Debug)]
enum ExactNames {
    Few(Box<[Box<str>]>),
    Many(HashSet<Box<str>, foldhash::fast::RandomState>),
}

impl NameSet {
    pub(super) fn new(entries: &[ListEntry], caller: &CallerName) -> Self {
        let mut exact: HashSet<Box<str>, foldhash::fast::RandomState> = HashSet::default();
        let mut prefixes = Vec::new();
        for entry in entries {
            match entry {
                ListEntry::Exact(name) => drop(exact.insert(name.clone())),
                ListEntry::Prefix(prefix) => prefixes.push(prefix.clone()),
                // A longer name cannot be a consumer.
                ListEntry::Caller => {
                    exact.extend(caller.all().filter(|name| name.len() <= MAX_PART).map(Into::into));
                }
            }
        }
        let exact = if exact.len() <= FEW {
            ExactNames::Few(exact.into_iter().collect())
        } else {
            ExactNames::Many(exact)
        };
        Self { exact, prefixes: shortest(prefixes) }
    }

    #[inline]
    pub(super) fn has(&self, name: &str) -> bool {
        let is_exact = match &self.exact {
            ExactNames::Few(few) => few.iter().any(|one| **one == *name),
            ExactNames::Many(many) => many.contains(name),
        };
        is_exact || self.has_prefix_of(name)
    }

    #[inline]
    fn has_prefix_of(&self, name: &str) -> bool {
        if self.prefixes.len() <= FEW {
            return self.prefixes.iter().any(|prefix| name.starts_with(&**prefix));
        }
        let after = self.prefixes.partition_point(|prefix| **prefix <= *name);
        let prefix = after.checked_sub(1).and_then(|last| self.prefixes.get(last));
        prefix.is_some_and(|prefix| name.starts_with(&**prefix))
    }
}

/// Sorts prefixes, and drops those that begin with another.
fn shortest(mut prefixes: Vec<Box<str>>) -> Vec<Box<str>> {
    prefixes.sort_unstable();
    let mut kept: Vec<Box<str>> = Vec::new();
    for prefix in prefixes {
        if !kept.last().is_some_and(|last| prefix.starts_with(&**last)) {
            kept.push(prefix);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(of: &[&str]) -> NameSet {
        let entries: Vec<ListEntry> = of.iter().map(|prefix| ListEntry::Prefix((*prefix).into())).collect();
        NameSet::new(&entries, &CallerName::one("x"))
    }

    #[test]
    fn of_prefixes_the_shortest_decides() {
        let set = prefixes(&["b", "ab", "a", "abc", "c/"]);
        assert_eq!(set.prefixes.iter().map(|prefix| &**prefix).collect::<Vec<_>>(), ["a", "b", "c/"]);
        // Few prefixes are compared one by one, and many are searched.
        let many = prefixes(&["b", "a", "c/", "d1", "d2", "d3", "d4"]);
        assert!(set.prefixes.len() <= FEW && many.prefixes.len() > FEW);
        for (name, has) in
            [("abc", true), ("a", true), ("b", true), ("c", false), ("c/d", true), ("", false), ("zz", false)]
        {
            assert_eq!((set.has(name), many.has(name)), (has, has), "{name}");
        }
        let all = prefixes(&["", "x"]);
        assert!(all.has("") && all.has("anything"));
    }

    #[test]
    fn few_and_many_names_are_found() {
        for count in [1, FEW, FEW + 1, 100] {
            let entries: Vec<ListEntry> =
                (0..count).map(|number| ListEntry::Exact(format!("name-{number}").into())).collect();
            let set = NameSet::new(&entries, &CallerName::one("x"));
            assert!((0..count).all(|number| set.has(&format!("name-{number}"))), "{count}");
            assert!(!set.has("name") && !set.has("") && !set.has(&format!("name-{count}")), "{count}");
        }
    }

    #[test]
    fn the_callers_own_name_is_no_pattern() {
        let set = NameSet::new(&[ListEntry::Caller], &CallerName::one("dns:*"));
        assert!(set.has("dns:*") && !set.has("dns:x"));
        let long = CallerName::one(&format!("spiffe://prod/{}", "x".repeat(MAX_PART)));
        let set = NameSet::new(&[ListEntry::Caller], &long);
        assert!(matches!(set.exact, ExactNames::Few(names) if names.is_empty()));
    }
}
