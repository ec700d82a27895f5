//! Rules with changes on top of them: those of live control on top of the files'.
//!
//! Lists and overrides of the changes are looked at before those of the rules. A strategy with other numbers keeps its
//! names, scopes and keys; the rules' overrides of it keep the numbers of the limits that they name.

use std::collections::HashMap;
use std::sync::Arc;

use super::shadows::TieredOverrides;
use super::tiers::{KeptStrategies, mixes};
use super::{Listed, Override, Resources, Rules, Strategy};

/// Changes of rules.
#[derive(Debug, Clone, Default)]
pub struct RuleChanges {
    /// Strategies with other numbers, in place of those of the same names.
    pub strategies: Vec<Strategy>,
    /// Generations by the names of strategies: another one has other keys, so its states start full.
    pub generations: HashMap<Box<str>, u64>,
    /// Overrides that take precedence over those of the rules.
    pub overrides: Vec<Override>,
    /// Entries of access lists that take precedence over those of the rules.
    pub access: Vec<AccessEntry>,
}

/// An entry of an access list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessEntry {
    /// The strategy; `None` is all of them.
    pub strategy: Option<Box<str>>,
    /// The list.
    pub listed: Listed,
    /// A consumer, or a pattern of consumers.
    pub consumer: String,
}

impl Rules {
    /// Returns the rules with `changes`. A change of an unknown strategy has no effect.
    pub fn amended(&self, changes: RuleChanges) -> Self {
        let RuleChanges { strategies, generations, overrides, access } = changes;
        let mut changed: HashMap<Box<str>, Strategy> =
            strategies.into_iter().map(|strategy| (strategy.name().into(), strategy)).collect();
        let mut same = Vec::with_capacity(self.strategies.len());
        let bases: Vec<Strategy> = self
            .strategies
            .iter()
            .map(|own| {
                let changed = changed.remove(own.name());
                let generation = generations.get(own.name()).copied().unwrap_or_default();
                same.push(changed.is_none() && generation == own.generation);
                let base = changed.unwrap_or_else(|| Strategy::clone(own));
                if generation == own.generation { base } else { base.with_generation(generation) }
            })
            .collect();
        let rebase = |one: Override| {
            let base = self.by_name.get(one.strategy.name()).and_then(|&place| bases.get(place))?;
            Some(Override { strategy: one.strategy.rebased(base), ..one })
        };
        let first: Vec<Override> = overrides.into_iter().filter_map(rebase).collect();
        for (base, same) in bases.iter().zip(&mut same) {
            let mut own = first.iter().filter(|one| one.strategy.name() == base.name()).peekable();
            *same &= own.peek().is_none() || base.mixes_numbers() || !mixes(base, own);
        }
        // There may be many: only those of strategies that have changed are made again.
        let files: Vec<Override> = self.file_overrides(&same).filter_map(rebase).collect();
        let kept = KeptStrategies { of: Some(self), same: &same };
        let mut rules = Self::new(bases, Resources::default());
        rules.resources = Arc::clone(&self.resources);
        rules.access = self.access.rest();
        for (place, exceptions) in rules.exceptions.iter_mut().enumerate() {
            exceptions.access = self.exceptions.get(place).map(|own| own.access.rest()).unwrap_or_default();
        }
        access.iter().for_each(|entry| rules.set_live_access(entry, true));
        let shadows: Vec<Vec<usize>> =
            self.shadows.iter().map(|all| all.iter().map(|shadow| shadow.index).collect()).collect();
        let rules = rules
            .with_tiered_shadows(&shadows, TieredOverrides { files: &files, first: &first }, kept)
            .with_tiers(files, first, kept);
        if self.inline.is_some() { rules.with_inline_limits() } else { rules }
    }

    fn file_overrides(&self, same: &[bool]) -> impl Iterator<Item = Override> {
        let changed = self.exceptions.iter().zip(same).filter(|(_, same)| !**same);
        let all = changed.flat_map(|(exceptions, _)| exceptions.overrides.iter());
        all.map(|(consumer, resource, strategy)| Override {
            consumer,
            resource,
            strategy: Strategy::clone(strategy),
        })
    }
}

impl Strategy {
    /// Rebases the override on `base`, whose other limits may have changed.
    pub(super) fn rebased(&self, base: &Self) -> Self {
        let mut rebased = base.clone();
        for (place, limit) in self.limits().iter().enumerate() {
            let bit = 1_u8.checked_shl(place as u32).unwrap_or_default();
            if self.overridden & bit != 0 {
                // A base keeps the names and scopes of its limits, and its share, so none of them is refused.
                let _ = rebased.override_limit(&limit.name, limit.algorithm);
            }
            let near = self.marks().and_then(|marks| marks.near_percent(place));
            if let Some(percent) = near.filter(|_| self.overridden_near & bit != 0) {
                let _ = rebased.override_near(&limit.name, percent);
            }
        }
        rebased
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::strategy::{Access, FailurePolicy, Field, Limit, Overrides, Resource, Scope};
    use weir_units::Micros;

    fn window(limit: u64) -> Algorithm {
        Algorithm::fixed_window(limit, Micros::from_secs(60), false, false).unwrap()
    }

    fn api(a: u64, b: u64) -> Strategy {
        let limit = |name: &str, limit| Limit {
            name: name.into(),
            scope: Scope::new(&[Field::Consumer]),
            algorithm: window(limit),
        };
        Strategy::new("api", vec![limit("a", a), limit("b", b)], false, FailurePolicy::Error).unwrap()
    }

    fn override_of(base: &Strategy, consumer: &str, limit: &str, number: u64) -> Override {
        let mut strategy = base.clone();
        strategy.override_limit(limit, window(number)).unwrap();
        Override { consumer: consumer.into(), resource: "*".into(), strategy }
    }

    fn files() -> Rules {
        let base = api(10, 20);
        let gold = override_of(&base, "gold-*", "a", 100);
        let access = Access::new(["bad".to_owned()], ["good".to_owned()]);
        let resources = Resources::new([("x".to_owned(), Resource { strategy: 0, group: None })]);
        Rules::new(vec![base], resources).with_access(access, []).with_overrides([gold])
    }

    fn limits(rules: &Rules, consumer: &str) -> Vec<u64> {
        let found = rules.resolve_for("x", consumer, "").unwrap();
        found.strategy.algorithms().iter().map(Algorithm::limit).collect()
    }

    /// Limits as they are shown and as the store decides by them are one.
    #[test]
    fn an_override_keeps_its_own_near_limit_and_only_that() {
        use crate::algorithm::budget::{BudgetLimit, CostedLimits, LimitCost};
        let base = |percents: [Option<u8>; 2]| {
            let limit = BudgetLimit {
                algorithm: window(1),
                cost: LimitCost::Named(0),
                at_once: false,
                near_percent: None,
            };
            let costed = CostedLimits { limits: vec![limit; 2], names: vec!["n".into()], hold: None };
            api(10, 20).with_costs(costed).with_marks(percents.to_vec(), vec![Box::default(); 2])
        };
        let near = |rules: &Rules, consumer: &str| {
            let found = rules.resolve_for("x", consumer, "").unwrap().strategy;
            let of_store = found.costed().unwrap().limits.iter().map(|limit| limit.near_percent);
            let said = (0..2).map(|place| found.marks().and_then(|marks| marks.near_percent(place)));
            assert!(of_store.clone().eq(said));
            of_store.collect::<Vec<_>>()
        };
        let mut gold = base([None, Some(80)]);
        gold.override_near("a", 50).unwrap();
        let gold = Override { consumer: "gold".into(), resource: "*".into(), strategy: gold };
        let resources = Resources::new([("x".to_owned(), Resource { strategy: 0, group: None })]);
        let files = Rules::new(vec![base([None, Some(80)])], resources).with_overrides([gold]);
        assert_eq!(
            (near(&files, "me"), near(&files, "gold")),
            (vec![None, Some(80)], vec![Some(50), Some(80)])
        );
        let changes = RuleChanges { strategies: vec![base([Some(10), Some(20)])], ..RuleChanges::default() };
        let amended = files.amended(changes);
        assert_eq!(near(&amended, "me"), [Some(10), Some(20)]);
        assert_eq!(near(&amended, "gold"), [Some(50), Some(20)]);
        assert!(base([None, None]).override_near("c", 50).is_err(), "there is no such limit");
    }

    #[test]
    fn nothing_changes_without_changes_and_ids_stay() {
        let before = files();
        let amended = before.amended(RuleChanges::default()).after(&before);
        assert_eq!(amended.strategies()[0].id(), before.strategies()[0].id());
        assert_eq!(limits(&amended, "gold-1"), [100, 20]);
        let overridden = |rules: &Rules| rules.resolve_for("x", "gold-1", "").unwrap().strategy.id();
        assert_eq!(overridden(&amended), overridden(&before));
    }

    /// A change must not cost more where the files have many overrides.
    #[test]
    fn the_overrides_of_the_files_are_made_again_only_for_a_strategy_that_changes() {
        let shadowed = Rules::new(vec![api(10, 20)], Resources::default());
        let gold = override_of(&shadowed.strategies()[0], "gold-*", "a", 100);
        let files = shadowed.with_shadows(&[vec![0]], std::slice::from_ref(&gold)).with_overrides([gold]);
        let tables = |rules: &Rules| {
            [&rules.exceptions[0].overrides, &rules.shadows(0)[0].overrides].map(Overrides::rest)
        };
        let shares = |one: &Rules, other: &Rules| {
            let (one, other) = (tables(one), tables(other));
            one.iter().zip(&other).map(|(one, other)| one.shares_with(other)).collect::<Vec<_>>()
        };
        let limits_of = |rules: &Rules, consumer: &str| {
            let found = rules.resolve_for("x", consumer, "api").unwrap();
            found.strategy.algorithms().iter().map(Algorithm::limit).collect::<Vec<_>>()
        };
        let live = |consumer: &str, resource: &str| {
            let one = Override { resource: resource.into(), ..override_of(&api(10, 20), consumer, "b", 1) };
            RuleChanges { overrides: vec![one], ..RuleChanges::default() }
        };
        let one = files.amended(live("me", "*")).after(&files);
        let other = files.amended(live("you", "*")).after(&one);
        assert_eq!(shares(&one, &files), [true, true]);
        assert_eq!(shares(&other, &one), [true, true]);
        assert_eq!((limits_of(&other, "gold-1"), limits_of(&other, "you")), (vec![100, 20], vec![10, 1]));
        let shadow = |rules: &Rules, consumer| {
            let found = rules.shadow_for(&rules.shadows(0)[0], "x", consumer).strategy.algorithms();
            found.iter().map(Algorithm::limit).collect::<Vec<_>>()
        };
        assert_eq!((shadow(&other, "gold-1"), shadow(&other, "you")), (vec![100, 20], vec![10, 1]));
        let changed = files.amended(RuleChanges { strategies: vec![api(5, 7)], ..RuleChanges::default() });
        assert_eq!(shares(&changed, &files), [false, false]);
        // Resources share the counter, and now one of them has numbers of its own.
        let mixed = files.amended(live("me", "x"));
        assert_eq!(shares(&mixed, &files), [false, false]);
        assert!(mixed.resolve_for("x", "gold-1", "api").unwrap().strategy.mixes_numbers());
    }

    #[test]
    fn another_generation_has_other_keys_also_of_overrides() {
        let generations = HashMap::from([("api".into(), 7)]);
        let before = files();
        let amended = before.amended(RuleChanges { generations, ..RuleChanges::default() }).after(&before);
        let found = |consumer| Arc::clone(amended.resolve_for("x", consumer, "").unwrap().strategy);
        for consumer in ["me", "gold-1"] {
            assert_eq!((found(consumer).name(), found(consumer).key_name()), ("api", "api@7"));
            let old = before.resolve_for("x", consumer, "").unwrap();
            assert_ne!(found(consumer).identity(0), old.strategy.identity(0));
            assert_ne!(found(consumer).id(), old.strategy.id());
        }
        assert_eq!(limits(&amended, "gold-1"), [100, 20]);
        let again = before.amended(RuleChanges {
            generations: HashMap::from([("api".into(), 7)]),
            ..RuleChanges::default()
        });
        assert_eq!(again.after(&amended).strategies()[0].id(), amended.strategies()[0].id());
    }
}
