//! Token budgets: each limit has its own cost, all are charged or none, and an estimate is held until it is settled.
//!
//! What is *held* lies beside a limit's state, in [`HeldParts`]: units that count until a time, and then end without a write.
//! The states of the engines stay as they are. A [`HoldRecord`] finds the parts of a call by its id.
//!
//! ```text
//!   fits       ⇔ required ≤ limit  ∧  used + held + required ≤ limit      (required: at_least, or the cost)
//!   remaining  = limit − used − held
//!   end        = ⌈(T + hold_for) / grain⌉ · grain,   grain = ⌈max / 16⌉      or the stop of the limit, if that is earlier
//!   charged    = max(0, real use − what is charged already)                  at the settlement
//! ```
//!
//! A named cost of 0 is not judged. T is the latest time that the parts of a decision have seen, so that an ended part stays
//! ended where a clock steps back.

mod adjust;
mod ask;
mod cells;
mod costs;
mod end;
mod held;
mod settle;
mod standing;
mod verdict;
mod write;

pub use adjust::{debit, debit_once, refund, reset};
pub use ask::ask;
pub use cells::BudgetCells;
pub use costs::{Ask, AskedCost, CostError, HoldError, NamedAsk, SettledCosts};
pub use held::NotHeld;
pub use settle::settle;
pub use verdict::{BudgetLimitVerdict, BudgetVerdict};

pub use super::held_parts::{HeldParts, MAX_ENDS};
pub use super::hold_record::{CallRecord, HoldEntry, HoldRecord, SettleOutcome, Settlement};
use super::{Algorithm, MAX_LIMITS};
use weir_units::Micros;

/// The largest number of named costs of a strategy.
pub const MAX_COST_NAMES: usize = 8;

/// The cost that a limit takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCost {
    /// The request's `cost`.
    Request,
    /// Always this much.
    Fixed(u64),
    /// The cost of this number among the names of the strategy.
    Named(usize),
}

/// One limit of a strategy with costs by limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The limit.
    pub algorithm: Algorithm,
    /// The cost that it takes.
    pub cost: LimitCost,
    /// True if a hold charges it at once.
    pub at_once: bool,
    /// `near_limit`, from 1 to 100.
    pub near_percent: Option<u8>,
}

/// `hold` of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldBounds {
    /// The longest hold.
    pub max: Micros,
    /// Time for which ids are known after their settlement, or after the end of their hold.
    pub known_for: Micros,
}

/// The limits of a strategy with their costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostedLimits {
    /// The limits, in order: at most [`MAX_LIMITS`].
    pub limits: Vec<BudgetLimit>,
    /// The names of the costs: at most [`MAX_COST_NAMES`].
    pub names: Vec<Box<str>>,
    /// Bounds of holds; `None` if it has none.
    pub hold: Option<HoldBounds>,
}

/// Reason that nothing was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDecided<F> {
    /// The id belongs to a call with other costs, or it was settled, or its hold has ended.
    OtherContents,
    /// Too many holds of one limit end at different times.
    TooManyEnds,
    /// No room is left.
    Full(F),
}

impl HoldBounds {
    /// The distance of two possible ends.
    pub const fn grain(&self) -> u64 {
        let grain = self.max.0.div_ceil(16);
        if grain == 0 { 1 } else { grain }
    }

    /// The next possible end.
    const fn round_up(&self, at: u64) -> u64 {
        at.div_ceil(self.grain()).saturating_mul(self.grain())
    }
}

impl BudgetLimit {
    /// True if a call names no cost for it.
    pub const fn is_fixed(&self) -> bool {
        matches!(self.cost, LimitCost::Fixed(_))
    }

    /// True if a hold sets units aside for it.
    pub const fn holds(&self) -> bool {
        !self.is_fixed() && !self.at_once
    }

    /// The level from which on `near_limit` is reached, if there is one.
    pub fn near_level(&self) -> Option<u64> {
        Some(self.algorithm.near_level(self.near_percent?))
    }
}

impl CostedLimits {
    /// The cost of its only limit, if that is fixed.
    pub fn only_fixed(&self) -> Option<u64> {
        match &*self.limits {
            [BudgetLimit { cost: LimitCost::Fixed(cost), .. }] => Some(*cost),
            _ => None,
        }
    }

    /// The limits without a fixed cost, which a record of a hold has entries for.
    fn settled(&self) -> impl Iterator<Item = usize> {
        self.limits.iter().enumerate().filter(|(_, limit)| !limit.is_fixed()).map(|(index, _)| index)
    }
}
