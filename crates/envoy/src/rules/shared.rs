//! Equal limits, entries and texts are one: thousands of rules have the same few.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Descriptor, Kind, RateLimit, RuleEntry, Unit};
use weir_core::strategy::Owner;

/// The part of a limit that can be hashed, and is the same in equal limits.
type Numbers = (u32, Unit, u32, Kind);

/// Limits, entries and texts that were seen before, to be used again in the place of equal ones.
#[derive(Debug, Default)]
pub struct SharedParts {
    known: HashMap<Numbers, Vec<RateLimit>>,
    /// The same with an owner, by the addresses of their strategies and of the owner: `known` keeps the former, and a
    /// limit its owner.
    owned: HashMap<(usize, usize), RateLimit>,
    texts: HashSet<Arc<str>>,
    /// By path, length of the key, and the two marks: the key is the start of the path.
    entries: HashMap<(String, usize, bool, bool), Arc<RuleEntry>>,
}

impl SharedParts {
    /// The text, or an equal one that was shared before.
    #[must_use]
    pub fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    /// The descriptor as an entry of rules.
    #[must_use]
    pub(super) fn entry(&mut self, descriptor: &Descriptor) -> Arc<RuleEntry> {
        let Descriptor { share_threshold, value_to_metric, .. } = *descriptor;
        let marks = (descriptor.path(), descriptor.key.len(), share_threshold, value_to_metric);
        let entry = self.entries.entry(marks).or_insert_with_key(|(path, ..)| {
            Arc::new(RuleEntry {
                path: path.as_str().into(),
                key: Arc::clone(&descriptor.key),
                shared: share_threshold.then(|| descriptor.matcher.text().into()),
                value_to_metric,
            })
        });
        Arc::clone(entry)
    }

    /// The limit, or an equal one that was shared before. What a node counts by itself is never shared.
    #[must_use]
    pub fn share(&mut self, limit: RateLimit) -> RateLimit {
        if limit.strategy().local().is_some() || limit.strategy().approximate().is_some() {
            return limit;
        }
        let numbers = (limit.requests_per_unit(), limit.unit(), limit.unit_multiplier(), limit.kind());
        let equal = self.known.entry(numbers).or_default();
        let is_equal = |known: &&RateLimit| {
            (known.bills(), known.own_max_debt()) == (limit.bills(), limit.own_max_debt())
                && known.strategy().on_store_failure() == limit.strategy().on_store_failure()
        };
        if let Some(known) = equal.iter().find(is_equal) {
            return known.clone();
        }
        equal.push(limit.clone());
        limit
    }

    /// The same with the owner of its keys.
    #[must_use]
    pub(super) fn owned(&mut self, limit: RateLimit, owner: &Arc<Owner>) -> RateLimit {
        let limit = self.share(limit);
        let addresses = (Arc::as_ptr(limit.strategy()).addr(), Arc::as_ptr(owner).addr());
        if let Some(owned) = self.owned.get(&addresses) {
            return owned.clone();
        }
        let is_shared = limit.strategy().local().is_none() && limit.strategy().approximate().is_none();
        let owned = limit.owned_by(owner);
        if is_shared {
            self.owned.insert(addresses, owned.clone());
        }
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::strategy::FailurePolicy;

    #[test]
    fn equal_limits_are_one_and_others_are_not() {
        let mut shared = SharedParts::default();
        let limit = |requests, policy| {
            let kind = Kind::FixedWindow { count_rejected: false };
            RateLimit::new(requests, Unit::Minute, 1, kind, policy).unwrap()
        };
        let one = shared.share(limit(5, FailurePolicy::Error));
        let same = shared.share(limit(5, FailurePolicy::Error));
        assert!(Arc::ptr_eq(one.strategy(), same.strategy()));
        for other in [
            limit(6, FailurePolicy::Error),
            limit(5, FailurePolicy::Allow),
            limit(5, FailurePolicy::Error).billing(false),
            limit(5, FailurePolicy::Error).with_max_debt(Some(7)),
        ] {
            let other = shared.share(other);
            assert!(!Arc::ptr_eq(one.strategy(), other.strategy()), "{other:?}");
        }
        let owners = ["a", "b"].map(|name| Arc::new(Owner::of_domain(name)));
        let owned = [0, 1, 0].map(|owner: usize| shared.owned(one.clone(), &owners[owner]));
        let names = owned.each_ref().map(|limit| limit.strategy().owner().name().to_owned());
        assert_eq!(names, ["domain:a", "domain:b", "domain:a"]);
        assert!(Arc::ptr_eq(owned[0].strategy(), owned[2].strategy()));
    }
}
