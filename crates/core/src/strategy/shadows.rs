//! Shadow strategies: decided beside a live one, charged on counters of their own, never enforced.
//!
//! A shadow is a configured strategy under a name that includes the live strategy's: `new-api~api`. No configured
//! strategy has such a name, so the shadow's counters are separate, even if the strategy is live for other calls or
//! shadows another one.

use std::sync::Arc;

use super::generation::generation_name;
use super::{Override, Overrides, Owner, Strategy, StrategyId, StrategyRule, Tag};

/// The most shadows that a strategy may have.
pub const MAX_SHADOWS: usize = 4;

/// Separator between the names of a shadow and its live strategy.
const SHADOW_OF: char = '~';

/// Overrides of the files, and those of live control, which take precedence.
#[derive(Debug, Clone, Copy)]
pub(super) struct TieredOverrides<'a> {
    pub(super) files: &'a [Override],
    pub(super) first: &'a [Override],
}

/// A strategy that is decided beside another one.
#[derive(Debug, Clone)]
pub struct Shadow {
    /// Index of the configured strategy that decides here, in [`Rules::strategies`](super::Rules::strategies).
    pub(super) index: usize,
    pair: usize,
    name: Box<str>,
    pub(super) strategy: Arc<Strategy>,
    pub(super) overrides: Overrides,
}

/// A limit in shadow mode.
#[derive(Debug, Clone)]
pub struct ShadowLimit {
    /// Index in its strategy.
    pub place: usize,
    /// The number among all shadows.
    pub pair: usize,
    /// Label: `limit:NAME`, which no strategy can be called.
    pub label: Box<str>,
}

impl ShadowLimit {
    pub(super) fn all_of(strategy: &Strategy, pairs: &mut impl Iterator<Item = usize>) -> Vec<Self> {
        let limits = strategy.limits().iter().enumerate().filter(|(_, limit)| limit.algorithm.is_shadow());
        limits
            .zip(pairs)
            .map(|((place, limit), pair)| Self { place, pair, label: format!("limit:{}", limit.name).into() })
            .collect()
    }
}

impl Shadow {
    /// `strategy` with `overrides` as the shadow of `live`; `pair` is its number among all shadows.
    pub(super) fn new(
        (index, strategy): (usize, &Strategy),
        live: &Strategy,
        pair: usize,
        overrides: TieredOverrides<'_>,
    ) -> Self {
        let name: Arc<str> = format!("{}{SHADOW_OF}{}", strategy.name, live.name).into();
        let owner = Arc::new(Owner::of_strategy(&name));
        let of = |all: &[Override]| {
            let own = all.iter().filter(|one| one.strategy.name() == strategy.name());
            shadowed(own, |one| one.shadowing(live, &name, &owner))
        };
        Self {
            index,
            pair,
            name: (&*strategy.name).into(),
            overrides: Overrides::new(of(overrides.files)).after(Overrides::live(of(overrides.first))),
            strategy: Arc::new(strategy.shadowing(live, &name, &owner)),
        }
    }

    /// Returns the shadow with other overrides that take precedence, where neither strategy has changed.
    pub(super) fn with_first(&self, live: &Strategy, pair: usize, first: &[Override]) -> Self {
        let (name, owner) = (&self.strategy.name, &self.strategy.owner);
        let first = first.iter().filter(|one| *one.strategy.name == *self.name);
        let first = shadowed(first, |one| one.shadowing(live, name, owner));
        Self { pair, overrides: self.overrides.rest().after(Overrides::live(first)), ..self.clone() }
    }

    /// Adds an override of live control for the strategy that it shadows with, or removes it.
    pub(super) fn set_live(
        &mut self,
        live: &Strategy,
        (consumer, resource): (&str, &str),
        one: Option<&Strategy>,
    ) {
        let shadowing = one.map(|one| one.shadowing(live, &self.strategy.name, &self.strategy.owner));
        self.overrides.set_live(consumer, resource, shadowing.map(Arc::new));
    }

    /// The configured name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number among the shadows of all strategies.
    pub fn pair(&self) -> usize {
        self.pair
    }

    /// The strategy for consumers without an exception.
    pub fn strategy(&self) -> &Arc<Strategy> {
        &self.strategy
    }
}

fn shadowed<'o>(
    overrides: impl Iterator<Item = &'o Override>,
    shadowing: impl Fn(&Strategy) -> Strategy,
) -> Vec<Override> {
    let shadowed = overrides.map(|one| Override {
        consumer: one.consumer.clone(),
        resource: one.resource.clone(),
        strategy: shadowing(&one.strategy),
    });
    shadowed.collect()
}

impl Strategy {
    /// The strategy under another name. If all keys of both strategies are in one slot, it is the same slot.
    fn shadowing(&self, live: &Self, name: &Arc<str>, owner: &Arc<Owner>) -> Self {
        let tag = match (&self.tag, &live.tag) {
            (Tag::Strategy(_), Tag::Strategy(slot)) => Tag::Strategy(slot.clone()),
            (Tag::Strategy(_), Tag::Fields(_)) => Tag::Strategy((&**name).into()),
            (Tag::Fields(_), _) => self.tag.clone(),
        };
        let key_name = generation_name(name, self.generation);
        Self {
            id: StrategyId::next(),
            rule: match &self.rule {
                StrategyRule::Rates(rates) => StrategyRule::Rates(rates.renamed(&key_name)),
                permits @ StrategyRule::Permits(_) => permits.clone(),
            },
            name: Arc::clone(name),
            key_name,
            owner: Arc::clone(owner),
            tag,
            // Nobody is answered by a shadow, so nothing answers in its place.
            local: None,
            ..self.clone()
        }
    }
}
