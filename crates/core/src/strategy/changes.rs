//! Differences between two configurations' rules, for people: by the same comparison as that of a reload.

use std::collections::BTreeMap;

use super::{Limit, Patterns, Resource, Rules, Strategy, StrategyRule};

/// Change of a strategy, a limit, an override or a pattern. A changed one has both.
#[derive(Debug, Clone, Copy)]
pub struct BeforeAfter<T> {
    /// The former one; `None` if it is new.
    pub before: Option<T>,
    /// The current one; `None` if it is gone.
    pub after: Option<T>,
}

/// A strategy that differs.
#[derive(Debug)]
pub struct StrategyChange<'a> {
    /// The name.
    pub name: &'a str,
    /// The strategy.
    pub strategy: BeforeAfter<&'a Strategy>,
    /// Limits that differ, if the strategy is not new or gone.
    pub limits: Vec<LimitChange<'a>>,
    /// True if all of its states get other keys in Redis, so that they start full there: its keys lie elsewhere.
    pub moves: bool,
    /// True if all of its states start full: it has permits now and had rates, or the other way round, or permits are
    /// counted by other fields, or nodes count within another bound.
    pub starts_full: bool,
    /// True if something else than its limits differs: its failure policy, its permits, its longest reservation.
    pub differs: bool,
    /// Overrides that differ: consumer, resource, and the strategy with its numbers.
    pub overrides: Vec<(String, String, BeforeAfter<&'a Strategy>)>,
    /// True if its access lists differ.
    pub lists: bool,
}

/// A limit that differs.
#[derive(Debug)]
pub struct LimitChange<'a> {
    /// The name.
    pub name: &'a str,
    /// The limit.
    pub limit: BeforeAfter<&'a Limit>,
    /// True if its states have other names than before, so that they start full.
    pub starts_full: bool,
}

/// A pattern of resources that differs.
#[derive(Debug)]
pub struct ResourceChange {
    /// The pattern.
    pub pattern: String,
    /// The strategy and the routing group.
    pub means: BeforeAfter<(String, Option<String>)>,
}

impl<T> BeforeAfter<T> {
    fn all<K: Ord>(
        before: impl IntoIterator<Item = (K, T)>,
        after: impl IntoIterator<Item = (K, T)>,
    ) -> BTreeMap<K, Self> {
        let mut all: BTreeMap<K, Self> =
            before.into_iter().map(|(key, it)| (key, Self { before: Some(it), after: None })).collect();
        for (key, it) in after {
            all.entry(key).or_insert(Self { before: None, after: None }).after = Some(it);
        }
        all
    }
}

impl Rules {
    /// Returns the strategies that differ in `next`, by name.
    pub fn strategy_changes<'a>(&'a self, next: &'a Self) -> Vec<StrategyChange<'a>> {
        let named =
            |rules: &'a Self| rules.strategies.iter().enumerate().map(|(at, it)| (it.name(), (at, &**it)));
        let all = BeforeAfter::all(named(self), named(next));
        all.into_iter().filter_map(|(name, both)| self.strategy_change(next, name, both)).collect()
    }

    fn strategy_change<'a>(
        &'a self,
        next: &'a Self,
        name: &'a str,
        both: BeforeAfter<(usize, &'a Strategy)>,
    ) -> Option<StrategyChange<'a>> {
        let strategy = BeforeAfter { before: both.before.map(|it| it.1), after: both.after.map(|it| it.1) };
        let (Some((was_at, one)), Some((is_at, other))) = (both.before, both.after) else {
            let (limits, overrides) = (Vec::new(), Vec::new());
            let (moves, starts_full, differs, lists) = (false, false, false, false);
            return Some(StrategyChange {
                name,
                strategy,
                limits,
                moves,
                starts_full,
                differs,
                overrides,
                lists,
            });
        };
        let exceptions = (self.exceptions.get(was_at), next.exceptions.get(is_at));
        let overrides = |of: Option<&'a super::rules::Exceptions>| {
            of.into_iter().flat_map(|it| it.overrides.iter()).map(|(who, what, it)| ((who, what), &**it))
        };
        let overrides = BeforeAfter::all(overrides(exceptions.0), overrides(exceptions.1));
        let differing = |both: &BeforeAfter<&Strategy>| match (both.before, both.after) {
            (Some(one), Some(other)) => {
                one.marks() != other.marks()
                    || one.limits().iter().zip(other.limits()).any(|(a, b)| a.algorithm != b.algorithm)
            }
            _ => true,
        };
        let overrides = overrides.into_iter().filter(|(_, both)| differing(both));
        let overrides: Vec<_> = overrides.map(|((who, what), both)| (who, what, both)).collect();
        let lists = match exceptions {
            (Some(one), Some(other)) => !one.access.has_the_same(&other.access),
            _ => false,
        };
        let limits = limit_changes(one, other);
        let same = one.means_the_same(other);
        if same && overrides.is_empty() && !lists {
            return None;
        }
        let kinds = matches!(
            (one.rule(), other.rule()),
            (StrategyRule::Rates(_), StrategyRule::Rates(_))
                | (StrategyRule::Permits(_), StrategyRule::Permits(_))
        );
        let bound = |strategy: &Strategy| strategy.approximate().map(|rule| rule.bound);
        let starts_full = !kinds
            || (one.permits().is_some() && one.fields() != other.fields())
            || bound(one) != bound(other);
        let moves = one.tag() != other.tag();
        let differs = !same && limits.is_empty() && !starts_full && !moves;
        Some(StrategyChange { name, strategy, limits, moves, starts_full, differs, overrides, lists })
    }

    /// Returns the patterns of resources that differ in `next`, sorted.
    pub fn resource_changes(&self, next: &Self) -> Vec<ResourceChange> {
        let all = BeforeAfter::all(self.meanings(), next.meanings());
        let differing = all.into_iter().filter(|(_, both)| both.before != both.after);
        differing.map(|(pattern, means)| ResourceChange { pattern, means }).collect()
    }

    /// Returns the meaning of each pattern of resources: the name of its strategy, and its routing group.
    fn meanings(&self) -> impl Iterator<Item = (String, (String, Option<String>))> {
        let resources: &Patterns<Resource> = self.resources();
        resources.iter().map(|(pattern, Resource { strategy, group })| {
            let name = self.strategies.get(*strategy).map(|it| it.name().to_owned()).unwrap_or_default();
            (pattern.to_string(), (name, group.as_deref().map(str::to_owned)))
        })
    }

    /// True if the access lists for all strategies are those of `next`.
    pub fn has_lists_of(&self, next: &Self) -> bool {
        self.access.has_the_same(&next.access)
    }
}

fn limit_changes<'a>(one: &'a Strategy, other: &'a Strategy) -> Vec<LimitChange<'a>> {
    let named = |strategy: &'a Strategy| strategy.limits().iter().map(|limit| (&*limit.name, limit));
    let all = BeforeAfter::all(named(one), named(other));
    let change = |(name, limit): (&'a str, BeforeAfter<&'a Limit>)| match (limit.before, limit.after) {
        (Some(a), Some(b)) if a.scope == b.scope && a.algorithm == b.algorithm => None,
        (Some(a), Some(b)) => Some(LimitChange { name, limit, starts_full: !shares_state(a, b) }),
        _ => Some(LimitChange { name, limit, starts_full: limit.after.is_some() }),
    };
    all.into_iter().filter_map(change).collect()
}

/// True if the states of a limit have the same names under both, so that what is used stays.
fn shares_state(one: &Limit, other: &Limit) -> bool {
    one.scope == other.scope && one.algorithm.engine().name() == other.algorithm.engine().name()
}
