//! Decisions over limits with costs of their own, by `lua/budget.lua`: their keys, their numbers, and their answers. They travel
//! with all other decisions.

mod decode;
mod encode;
mod keys;
mod numbers;
mod question;

use std::sync::Arc;

use weir_core::algorithm::budget::CostedLimits;
use weir_core::key::KeySecret;

pub(super) use self::decode::decode;
pub(super) use self::encode::encode;
pub(super) use self::keys::write_keys;
use self::question::BudgetQuestion;
use crate::BudgetDecision;

/// The question of a request.
pub(super) struct BudgetRequest {
    costed: Arc<CostedLimits>,
    question: BudgetQuestion,
}

impl BudgetRequest {
    /// The numbers of `decision`. `mark` is a random number of 52 bits.
    pub(super) fn new(secret: &KeySecret, decision: &BudgetDecision<'_>, mark: u64) -> Self {
        let question = BudgetQuestion::new(secret, decision, mark);
        Self { costed: Arc::clone(decision.costed), question }
    }

    /// True if its id has a record of the kind that other decisions have.
    pub(super) fn needs_once(&self) -> bool {
        self.question.needs_once()
    }

    /// True if `other` has the same limits and costs.
    pub(super) fn shares_limits(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.costed, &other.costed)
    }
}

/// The field names in the order they are sent. A test compares them with the script.
#[cfg(test)]
pub(in crate::redis) const DOUBLES: &[&[&str]] = &[
    numbers::BudgetGroupHead::NAMES,
    numbers::BudgetLimitNumbers::NAMES,
    numbers::BudgetHead::NAMES,
    numbers::BudgetUnits::NAMES,
];
