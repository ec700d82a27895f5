//! A resolved request, with the keys of its limits.

use weir_core::key::{self, KeyPrefix, KeySecret, Namespace, Placements, Subject};
use weir_core::strategy::{Limit, Resolved, Rules, Strategy};

/// A request, and the result of its resolution.
pub(in crate::cli) struct ExplainedRequest<'a> {
    pub(in crate::cli) rules: &'a Rules,
    pub(in crate::cli) subject: Subject<'a>,
    /// True if the request names the strategy itself.
    pub(in crate::cli) explicit: bool,
    pub(in crate::cli) resolved: Resolved<'a>,
    /// The secret of the hash tags.
    pub(in crate::cli) secret: KeySecret,
    /// The placement of routing groups on shards.
    pub(in crate::cli) placements: &'a Placements,
    /// The key prefix.
    pub(in crate::cli) namespace: &'a Namespace,
}

impl ExplainedRequest<'_> {
    /// Returns the strategy without overrides.
    pub(super) fn base(&self) -> &Strategy {
        self.rules.strategies().get(self.resolved.index).map_or(&**self.resolved.strategy, |base| base)
    }

    /// Iterates over the limits. The flag is true if the override changes the limit.
    pub(super) fn limits(&self) -> impl Iterator<Item = (&Limit, bool)> {
        let (own, base) = (self.resolved.strategy.limits(), self.base().algorithms());
        own.iter().zip(base).map(|(limit, base)| (limit, limit.algorithm != *base))
    }

    /// Returns the hash tag of all keys of the decision: a keyed hash.
    pub(super) fn tag(&self) -> u128 {
        self.placements.tag(&self.secret, self.resolved.strategy, &self.subject, &mut Vec::new())
    }

    /// Returns the keys of the leases in Redis.
    pub(super) fn lease_keys(&self) -> [String; 2] {
        let mut names = Vec::new();
        let prefix = self.namespace.prefix(self.tag());
        let first = key::write_lease_keys(&mut names, prefix, self.resolved.strategy, &self.subject);
        let (records, ends) = names.split_at(first);
        [records, ends].map(|key| String::from_utf8_lossy(key).into_owned())
    }

    /// Returns the limit's key in Redis.
    pub(super) fn key(&self, limit: &Limit) -> String {
        let strategy = self.resolved.strategy;
        self.name(|name, prefix| key::write_key(name, prefix, strategy, limit, &self.subject))
    }

    /// Returns the key of a log's reservations, if it has them.
    pub(super) fn held_key(&self, limit: &Limit) -> Option<String> {
        let strategy = self.resolved.strategy;
        limit.algorithm.is_held().then(|| {
            self.name(|name, prefix| key::write_held_key(name, prefix, strategy, limit, &self.subject))
        })
    }

    /// Returns the key of what open holds have of the limit at `place`, if it is held.
    pub(super) fn parts_key(&self, place: usize) -> Option<String> {
        let strategy = self.resolved.strategy;
        let costed = strategy.costed().filter(|costed| costed.hold.is_some())?;
        costed.limits.get(place).filter(|limit| !limit.is_fixed() && !limit.at_once)?;
        let limit = strategy.limits().get(place)?;
        Some(self.name(|name, prefix| key::write_parts_key(name, prefix, strategy, limit, &self.subject)))
    }

    /// Returns the key of the record of a hold, with the word ID for its id.
    pub(super) fn hold_key(&self) -> String {
        let strategy = self.resolved.strategy;
        self.name(|name, prefix| key::write_hold_key(name, prefix, strategy, &self.subject, "ID"))
    }

    fn name(&self, write: impl FnOnce(&mut Vec<u8>, KeyPrefix<'_>)) -> String {
        let mut name = Vec::new();
        write(&mut name, self.namespace.prefix(self.tag()));
        String::from_utf8_lossy(&name).into_owned()
    }
}
