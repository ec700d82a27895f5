//! Strategy that a node decides with by itself while the store cannot answer (`on_store_failure: local`): it has the same
//! names and scopes, with a part of each limit.
//!
//! It is made when the configuration is read, so a share that some limit cannot have is an error there. An override
//! has its own, of its own numbers.

use std::sync::Arc;

use super::{FailurePolicy, Limit, LocalPolicy, Strategy, StrategyId};
use crate::algorithm::{Algorithm, NoShare, Share};

/// The smaller strategy.
#[derive(Debug, Clone)]
pub struct LocalStrategy {
    strategy: Arc<Strategy>,
    /// The id of the strategy without overrides, under which the answers of the store are known.
    known_as: StrategyId,
}

/// Reason that a strategy cannot be decided by a node itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    /// The strategy has permits.
    #[error(
        "`local` is for strategies of rate limits; a node by itself cannot know who holds permits: write allow, deny or \
         error"
    )]
    Permits,
    /// A limit that warms up.
    #[error(
        "limit `{0}` is a warm_up, of which a node cannot have a part; `local` is for every other algorithm: write \
         allow, deny or error"
    )]
    WarmUp(Box<str>),
    /// A number that becomes 0.
    #[error(
        "{number} {value} of limit `{limit}` is 0 at a share of {share}, so a node by itself would never admit anything; \
         the nearest share that works is {nearest}"
    )]
    Zero {
        /// The limit.
        limit: Box<str>,
        /// The number's name.
        number: &'static str,
        /// The value.
        value: u64,
        /// The share that was asked for.
        share: Share,
        /// The nearest one that all limits can have.
        nearest: Share,
    },
    /// A rate that cannot be counted exactly.
    #[error(
        "the rate of limit `{limit}` cannot be counted exactly at a share of {share}: burst times the time for one unit \
         must stay below 2^52 ticks; the nearest share that works is {nearest}"
    )]
    Inexact {
        /// The limit.
        limit: Box<str>,
        /// The share that was asked for.
        share: Share,
        /// The nearest one that all limits can have.
        nearest: Share,
    },
}

impl LocalStrategy {
    /// The strategy to decide with.
    #[inline]
    pub fn strategy(&self) -> &Arc<Strategy> {
        &self.strategy
    }

    /// The id under which the store's answers are known: the same for a strategy and its overrides, and another one
    /// after each change of the configuration that concerns them.
    #[inline]
    pub fn known_as(&self) -> StrategyId {
        self.known_as
    }
}

impl Strategy {
    /// The strategy with what a node decides with by itself, if its failure policy says so.
    pub fn with_local(self) -> Result<Self, LocalError> {
        let FailurePolicy::Local(LocalPolicy { share, .. }) = self.on_store_failure else { return Ok(self) };
        if self.permits().is_some() {
            return Err(LocalError::Permits);
        }
        let mut smaller = Self { local: None, approximate: None, ..self.clone() };
        smaller.id = StrategyId::next();
        for limit in self.limits() {
            smaller.set_algorithm(&limit.name, self.part_of(limit, share)?);
        }
        let local = LocalStrategy { strategy: Arc::new(smaller), known_as: self.id };
        Ok(Self { local: Some(Arc::new(local)), ..self })
    }

    /// Returns the strategy of a node by itself.
    #[inline]
    pub fn local(&self) -> Option<&LocalStrategy> {
        self.local.as_deref()
    }

    /// Gives the local strategy the part of limit `name` as it is now.
    pub(super) fn override_local(&mut self, name: &str) -> Result<(), LocalError> {
        let (Some(local), FailurePolicy::Local(policy)) = (&self.local, self.on_store_failure) else {
            return Ok(());
        };
        let Some(limit) = self.limits().iter().find(|limit| *limit.name == *name) else { return Ok(()) };
        let mut smaller = Self::clone(&local.strategy);
        smaller.id = StrategyId::next();
        smaller.set_algorithm(name, self.part_of(limit, policy.share)?);
        self.local = Some(Arc::new(LocalStrategy { strategy: Arc::new(smaller), known_as: local.known_as }));
        Ok(())
    }

    fn set_algorithm(&mut self, name: &str, algorithm: Algorithm) {
        self.change_limits(|limit| (*limit.name == *name).then_some(algorithm));
    }

    fn part_of(&self, limit: &Limit, share: Share) -> Result<Algorithm, LocalError> {
        let nearest = || {
            let all_have = |share| self.algorithms().iter().all(|limit| limit.at_share(share).is_ok());
            share.nearest(all_have)
        };
        limit.algorithm.at_share(share).map_err(|why| {
            let name = limit.name.clone();
            match why {
                NoShare::WarmUp => LocalError::WarmUp(name),
                NoShare::Inexact => LocalError::Inexact { limit: name, share, nearest: nearest() },
                NoShare::Zero(number, value) => {
                    LocalError::Zero { limit: name, number, value, share, nearest: nearest() }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::{Field, Scope, WhenLocalFull};
    use weir_units::Micros;

    fn window(limit: u64) -> Algorithm {
        Algorithm::fixed_window(limit, Micros::from_secs(1), false, false).unwrap()
    }

    fn strategy(limits: &[u64], share: (u16, u16)) -> Strategy {
        let limit = |(place, limit): (usize, &u64)| Limit {
            name: format!("limit-{place}").into(),
            scope: Scope::new(&[Field::Consumer]),
            algorithm: window(*limit),
        };
        let share = Share::new(share.0, share.1).unwrap();
        let policy = FailurePolicy::Local(LocalPolicy { share, when_full: WhenLocalFull::Deny });
        Strategy::new("s", limits.iter().enumerate().map(limit).collect(), false, policy).unwrap()
    }

    /// Live control changes numbers, and begins generations.
    #[test]
    fn another_generation_is_not_known_and_has_keys_of_its_own() {
        let base = strategy(&[8], (1, 4)).with_local().unwrap();
        let next = base.clone().with_generation(5);
        let (own, before) = (next.local().unwrap(), base.local().unwrap());
        assert_ne!(own.known_as(), before.known_as());
        assert_eq!(own.strategy().key_name(), next.key_name());
        assert_eq!(own.strategy().identity(0), next.identity(0));
        assert_ne!(own.strategy().identity(0), before.strategy().identity(0));
        let mut raised = next.clone();
        raised.override_limit("limit-0", window(40)).unwrap();
        assert_eq!(raised.local().unwrap().strategy().identity(0), next.identity(0));
    }

    #[test]
    fn the_nearest_share_is_one_that_all_limits_can_have() {
        let error = strategy(&[8, 3, 5], (1, 10)).with_local().unwrap_err();
        assert!(error.to_string().ends_with("the nearest share that works is 1/3"), "{error}");
    }
}
