//! Decisions over limits with costs of their own, by `lua/budget.lua`: their keys, their numbers, and their answers. They travel
//! with all other decisions.

mod decode;
mod encode;
mod keys;
mod numbers;
mod question;

use std::sync::Arc;

use weir_core::algorithm::budget::{Ask, AskedCost, CostedLimits};
use weir_core::key::KeySecret;

pub(super) use self::decode::decode;
pub(super) use self::encode::encode;
pub(super) use self::keys::write_keys;
use self::question::BudgetQuestion;
use crate::redis::plain::{self, Form};
use crate::{BudgetDecision, BudgetOp};

pub(super) struct BudgetRequest {
    costed: Arc<CostedLimits>,
    question: BudgetQuestion,
    /// Question of the short path, if it can answer.
    plain: Option<Ask>,
}

impl BudgetRequest {
    pub(super) fn new(secret: &KeySecret, decision: &BudgetDecision<'_>, mark: u64) -> Self {
        let question = BudgetQuestion::new(secret, decision, mark);
        let plain = plain_question(decision).cloned();
        Self { costed: Arc::clone(decision.costed), question, plain }
    }

    /// The limits, and what the short path is asked of them, if the question is one for it.
    pub(super) fn plain(&self) -> Option<(&CostedLimits, &Ask)> {
        Some((&self.costed, self.plain.as_ref()?))
    }

    pub(super) fn form(&self) -> Form {
        match self.plain {
            Some(_) => plain::form_of_costs(self.costed.limits.iter().map(|limit| &limit.algorithm)),
            None => Form::Budget,
        }
    }

    /// True if its id has a record of the kind that other decisions have.
    pub(super) fn needs_once(&self) -> bool {
        self.question.needs_once()
    }

    pub(super) fn shares_limits(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.costed, &other.costed)
    }
}

/// The question, if nothing is held, it has no id, and each limit is judged for a whole cost above 0.
fn plain_question<'a>(decision: &BudgetDecision<'a>) -> Option<&'a Ask> {
    let BudgetOp::Ask(asked) = decision.op else { return None };
    let is_judged = |cost| matches!(asked.of(cost), AskedCost { cost: 1.., at_least: None });
    let is_plain = decision.costed.hold.is_none()
        && !asked.has_id
        && asked.hold_for.is_none()
        && decision.costed.limits.iter().all(|limit| is_judged(limit.cost));
    is_plain.then_some(asked)
}

/// The field names in the order they are sent. A test compares them with the script.
#[cfg(test)]
pub(in crate::redis) const DOUBLES: &[&[&str]] = &[
    numbers::BudgetGroupHead::NAMES,
    numbers::BudgetLimitNumbers::NAMES,
    numbers::BudgetHead::NAMES,
    numbers::BudgetUnits::NAMES,
];
