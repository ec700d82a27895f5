//! Which of a strategy's limits a decision acts on, and whether it may happen only once.

use std::borrow::Cow;

use super::{Decision, StoreError};
use weir_core::algorithm::{Algorithm, Engine, MAX_LIMITS, Op};
use weir_core::strategy::Limit;
use weir_units::Micros;

/// How long the id of a refund is remembered: a refund that is tried again after that is another one.
pub const REFUND_ID_LASTS: Micros = Micros::from_secs(24 * 3600);

/// Some of a strategy's limits, by their places in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSet(u8);

// A set has a bit for every limit that a strategy may have.
const _: () = assert!(MAX_LIMITS <= u8::BITS as usize);

/// The part of a strategy that a decision is about. Limits beside it are neither read nor written, and
/// have no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// The limits.
    pub limits: LimitSet,
    /// Of a refund: the id under which it happens once within [`REFUND_ID_LASTS`], for this strategy,
    /// resource and consumer. Empty: it happens each time. Other operations have none.
    pub id: &'a str,
}

impl LimitSet {
    /// All limits.
    pub const ALL: Self = Self(u8::MAX);
    /// None.
    pub const NONE: Self = Self(0);

    /// These and the limit at `index`.
    #[must_use]
    pub const fn with(self, index: usize) -> Self {
        Self(self.0 | 1 << (index % MAX_LIMITS))
    }

    /// Whether the limit at `index` is one of them.
    #[must_use]
    pub const fn has(self, index: usize) -> bool {
        self.0 & 1 << (index % MAX_LIMITS) != 0
    }
}

impl Part<'_> {
    /// Everything.
    pub const ALL: Self = Self { limits: LimitSet::ALL, id: "" };
}

impl<'a> Decision<'a> {
    /// The limits that it is about, in the order of the strategy.
    pub fn limits(&self) -> impl Iterator<Item = &'a Limit> + use<'a> {
        let part = self.limit_set();
        let all = self.strategy.limits().iter().enumerate();
        all.filter(move |(index, _)| part.has(*index)).map(|(_, limit)| limit)
    }

    /// Their algorithms.
    #[inline]
    pub(super) fn algorithms(&self) -> Cow<'a, [Algorithm]> {
        if self.limit_set() == LimitSet::ALL {
            return Cow::Borrowed(self.strategy.algorithms());
        }
        Cow::Owned(self.limits().map(|limit| limit.algorithm).collect())
    }

    /// The id under which it may happen only once.
    pub(super) fn once(&self) -> Option<&'a str> {
        let id = self.part.map_or("", |part| part.id);
        (self.op == Op::Refund && !id.is_empty()).then_some(id)
    }
}

/// Refuses what an operation does not mean for these limits, before the store is asked.
pub(super) fn check_supported(decision: &Decision<'_>) -> Result<(), StoreError> {
    let is_bucket = |limit: &Algorithm| matches!(limit.engine(), Engine::Bucket(_));
    let unsupported = |why| Err(StoreError::Unsupported(why));
    match decision.op {
        Op::AtMost | Op::Reserve { .. } if !matches!(&*decision.algorithms(), [one] if is_bucket(one)) => {
            unsupported("at_most and reserve are defined for a strategy of one bucket limit only")
        }
        Op::Refund if decision.limits().any(|limit| limit.algorithm.counts_denied()) => {
            unsupported("refund is not defined for limits that count denied attempts")
        }
        _ => Ok(()),
    }
}
