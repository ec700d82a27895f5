//! The limits that a decision acts on, and its idempotency id.

use weir_core::algorithm::MAX_LIMITS;
use weir_units::Micros;

/// Lifetime of a refund's id: a retry after that is another refund.
pub const REFUND_ID_LASTS: Micros = Micros::from_secs(24 * 3600);

/// A set of a strategy's limits, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSet(u8);

// A bit mask with a bit for each limit of a strategy.
const _: () = assert!(MAX_LIMITS <= u8::BITS as usize);

/// The part of a strategy that a decision is about. Other limits are neither read nor written, and have no verdict.
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

    /// Adds the limit at `index`.
    #[must_use]
    pub const fn with(self, index: usize) -> Self {
        Self(self.0 | 1 << (index % MAX_LIMITS))
    }

    /// True if the limit at `index` is in the set.
    #[must_use]
    pub const fn has(self, index: usize) -> bool {
        self.0 & 1 << (index % MAX_LIMITS) != 0
    }
}

impl Part<'_> {
    /// Everything.
    pub const ALL: Self = Self { limits: LimitSet::ALL, id: "" };
}
