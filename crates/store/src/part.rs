//! Which of a strategy's limits a decision acts on, and whether it may happen only once.

use std::borrow::Cow;

use super::{Decision, StoreError};
use weir_core::algorithm::{Algorithm, Engine, MAX_LIMITS, Op};
use weir_core::key::Operation;
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
    /// The id under which the operation happens once, for this strategy, resource and consumer: a refund within
    /// [`REFUND_ID_LASTS`], a forced debit within [`DEBIT_LASTS`], and what is let through until [`RECORD_LASTS`] after
    /// its start. Empty: it happens each time. A cancelled reservation is named by it. A reset has none.
    ///
    /// [`DEBIT_LASTS`]: weir_core::algorithm::DEBIT_LASTS
    /// [`RECORD_LASTS`]: weir_core::algorithm::RECORD_LASTS
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

    /// What remembers that it has happened, if it may happen only once.
    #[inline]
    pub(super) fn once(&self) -> Option<Once<'a>> {
        let id = self.part.map_or("", |part| part.id);
        if id.is_empty() {
            return None;
        }
        match self.op {
            Op::Refund => Some(Once::Marker(id)),
            Op::Charge | Op::AtMost => Some(Once::Record(Operation::Charge, id)),
            Op::Force => Some(Once::Record(Operation::Debit, id)),
            Op::Reserve { .. } | Op::Cancel => Some(Once::Record(Operation::Reserve, id)),
            Op::Peek | Op::Reset | Op::Count { .. } => None,
        }
    }
}

/// What remembers that something has happened, and the caller's id of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Once<'a> {
    /// A refund: that it has happened.
    Marker(&'a str),
    /// Another operation: what was decided.
    Record(Operation, &'a str),
}

/// Refuses what an operation does not mean for these limits, before the store is asked.
pub(super) fn check_supported(decision: &Decision<'_>) -> Result<(), StoreError> {
    let counts_denied = || decision.limits().any(|limit| limit.algorithm.counts_denied());
    let is_fixed = || decision.limits().any(|limit| !limit.algorithm.is_adjustable());
    let is_bucketed = |limit: &Algorithm| matches!(limit.engine(), Engine::Slots(_));
    let why = match decision.op {
        Op::AtMost if counts_denied() => {
            "at_most is not defined for limits that count denied attempts; it is for every limit without `count_denied`"
        }
        Op::Reserve { .. } if !matches!(&*decision.algorithms(), [one] if one.reserves()) => {
            "a reservation needs a strategy of exactly one limit, which is a token_bucket, a warm_up, a sliding_log with \
             `hold: true`, or an interval_refill whose refill is at most its capacity"
        }
        Op::Cancel if !matches!(&*decision.algorithms(), [one] if one.cancels()) => {
            "a reservation can be cancelled where the strategy has exactly one limit, which is a token_bucket without \
             `charge_after`, a sliding_log with `hold: true`, or an interval_refill whose refill is at most its capacity"
        }
        Op::Count { .. } if !matches!(&*decision.algorithms(), [one] if is_bucketed(one)) => {
            "count is defined for one bucketed_window limit only"
        }
        Op::Refund if counts_denied() => "refund is not defined for limits that count denied attempts",
        Op::Refund if is_fixed() => "refund is not defined for warm_up; it is for every other algorithm",
        Op::Force if is_fixed() => "debit is not defined for warm_up; it is for every other algorithm",
        _ => return Ok(()),
    };
    Err(StoreError::Unsupported(why))
}
