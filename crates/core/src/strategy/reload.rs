//! The rules of one configuration after those of another: what is unchanged, and what was removed.

use std::sync::Arc;

use super::patterns::NameTable;
use super::{Overrides, Resource, Resources, Rules, Strategy, StrategyRule};

/// Removed strategies whose leases may still be renewed and released.
const MAX_REMOVED: usize = 1_000;

impl Strategy {
    /// True if both decide alike, under the same keys.
    pub fn means_the_same(&self, other: &Self) -> bool {
        self.key_name == other.key_name
            && self.tag == other.tag
            && self.mixes_numbers == other.mixes_numbers
            && self.on_store_failure == other.on_store_failure
            && self.approximate == other.approximate
            && self.max_reservation() == other.max_reservation()
            && self.bans() == other.bans()
            && self.costed() == other.costed()
            && self.marks() == other.marks()
            && match (&self.rule, &other.rule) {
                (StrategyRule::Permits(one), StrategyRule::Permits(other)) => one == other,
                (StrategyRule::Rates(_), StrategyRule::Rates(_)) => true,
                _ => return false,
            }
            && self.fields == other.fields
            && self.limits().len() == other.limits().len()
            && self.limits().iter().zip(other.limits()).all(|(one, other)| {
                (&one.name, &one.scope, &one.algorithm) == (&other.name, &other.scope, &other.algorithm)
            })
    }
}

impl Overrides {
    fn sorted(&self) -> Vec<(String, String, &Arc<Strategy>)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by(|(a, b, _), (c, d, _)| (a, b).cmp(&(c, d)));
        all
    }

    fn mean_the_same(&self, other: &Self) -> bool {
        let first = match (self.first(), other.first()) {
            (None, None) => true,
            (Some(one), Some(other)) => std::ptr::eq(one, other) || one.mean_the_same(other),
            _ => false,
        };
        if self.shares_with(other) {
            return first;
        }
        let (own, others) = (self.sorted(), other.sorted());
        first
            && own.len() == others.len()
            && own.iter().zip(&others).all(
                |((consumer, resource, one), (other_consumer, other_resource, other))| {
                    consumer == other_consumer && resource == other_resource && one.means_the_same(other)
                },
            )
    }
}

impl Rules {
    /// Returns the rules after `before`: a strategy that means the same, with the same overrides, is the same one, so that
    /// what is known of it stays.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for (place, strategy) in self.strategies.iter_mut().enumerate() {
            let known = before.by_name.get(strategy.name());
            let Some(&known) = known else { continue };
            let parts =
                (before.strategies.get(known), before.exceptions.get(known), self.exceptions.get_mut(place));
            let (Some(same), Some(theirs), Some(own)) = parts else { continue };
            if same.means_the_same(strategy) && own.overrides.mean_the_same(&theirs.overrides) {
                *strategy = Arc::clone(same);
                own.overrides = theirs.overrides.clone();
            }
        }
        self
    }

    /// The concurrency strategies of `before` that are none in these rules, with their resources and lists. A strategy
    /// of several rules is that of the first.
    pub fn removed_permits(&self, before: [&Self; 2]) -> Self {
        let (mut removed, mut by_name, mut resources) = (Self::default(), NameTable::default(), Vec::new());
        for rules in before {
            for (place, strategy) in rules.strategies.iter().enumerate() {
                let now = self.by_name.get(strategy.name()).and_then(|&place| self.strategies.get(place));
                let is_gone = now.is_none_or(|now| now.permits().is_none());
                let is_new = !by_name.contains_key(strategy.name());
                let has_room = removed.strategies.len() < MAX_REMOVED;
                if !(strategy.permits().is_some() && is_gone && is_new && has_room) {
                    continue;
                }
                let index = removed.strategies.len();
                by_name.insert(strategy.name().into(), index);
                removed.strategies.push(Arc::clone(strategy));
                removed.exceptions.push(rules.exceptions.get(place).cloned().unwrap_or_default());
                let own = rules.resources.iter().filter(|(_, resource)| resource.strategy == place);
                resources.extend(own.map(|(pattern, resource)| {
                    (pattern.to_string(), Resource { strategy: index, group: resource.group.clone() })
                }));
            }
        }
        removed.by_name = Arc::new(by_name);
        removed.resources = Arc::new(Resources::new(resources));
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Algorithm, Rate};
    use crate::strategy::{Access, FailurePolicy, Field, Limit, Override, Scope};
    use crate::strategy::{ConcurrencyNumbers, ConcurrencyRule, LimitSource};
    use weir_units::Micros;

    fn rates(name: &str, limit: u64) -> Strategy {
        let rate = Rate { count: limit, period: Micros::from_secs(1) };
        let algorithm = Algorithm::bucket(limit, rate).unwrap();
        let scope = Scope::new(&[Field::Consumer]);
        let limits = vec![Limit { name: "each".into(), scope, algorithm }];
        Strategy::new(name, limits, false, FailurePolicy::Error).unwrap()
    }

    fn permits(name: &str) -> Strategy {
        let ttl = Micros::from_secs(30);
        let source = LimitSource::Fixed(3);
        let numbers = ConcurrencyNumbers { source, ttl, max_ttl: ttl, max_weight: None, partitions: None };
        let rule = ConcurrencyRule::new(numbers).unwrap();
        Strategy::of_leases(name, Scope::default(), rule, FailurePolicy::Error).unwrap()
    }

    fn rules(strategies: Vec<Strategy>) -> Rules {
        let all = strategies.iter().enumerate();
        let resources =
            all.map(|(strategy, it)| (format!("{}/*", it.name()), Resource { strategy, group: None }));
        let resources = Resources::new(resources.collect::<Vec<_>>());
        Rules::new(strategies, resources)
    }

    #[test]
    fn what_is_unchanged_keeps_its_id_and_what_is_changed_gets_another() {
        let of = |overridden: u64| {
            let rules = rules(vec![rates("a", 1), rates("b", 2), rates("c", 3)]);
            let raised =
                Override { consumer: "bob".into(), resource: "*".into(), strategy: rates("c", overridden) };
            rules.with_access(Access::default(), []).with_overrides([raised])
        };
        let before = of(7);
        let ids = |rules: &Rules| rules.strategies().iter().map(|it| it.id()).collect::<Vec<_>>();
        let same = of(7).after(&before);
        assert_eq!(ids(&same), ids(&before));
        let other = of(8).after(&before);
        assert_eq!(ids(&other)[..2], ids(&before)[..2]);
        assert_ne!(ids(&other)[2], ids(&before)[2], "its overrides are others");
        let fewer = rules(vec![rates("b", 2), rates("a", 5)]).after(&before);
        assert_eq!(ids(&fewer)[0], ids(&before)[1]);
        assert_ne!(ids(&fewer)[1], ids(&before)[0]);
    }

    #[test]
    fn removed_permits_are_found_by_their_names_and_resources() {
        let before = rules(vec![permits("jobs"), rates("a", 1), permits("imports")]);
        let now = rules(vec![rates("jobs", 1), permits("imports")]);
        let removed = now.removed_permits([&before, &Rules::default()]);
        assert_eq!(removed.strategies().len(), 1);
        for (resource, name) in [("jobs/17", ""), ("other", "jobs")] {
            let found = removed.resolve(resource, name).unwrap();
            assert!(found.strategy.permits().is_some());
            assert_eq!(found.strategy.id(), before.strategies()[0].id());
        }
        let still = now.removed_permits([&rules(vec![]), &removed]);
        assert_eq!(still.strategies().len(), 1, "it stays removed");
        assert_eq!(before.removed_permits([&now, &removed]).strategies().len(), 0, "it is there again");
    }
}
