//! One operation over limits with costs of their own, as numbers.

use smallvec::SmallVec;
use weir_core::algorithm::MAX_LIMITS;
use weir_core::algorithm::budget::{Ask, BudgetLimit};
use weir_core::key::{self, KeySecret};
use weir_units::CEILING;

use super::numbers::{BudgetHead, BudgetUnits};
use crate::redis::codes::op;
use crate::{BudgetDecision, BudgetOp};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct BudgetQuestion {
    pub(super) head: BudgetHead,
    pub(super) units: SmallVec<[BudgetUnits; MAX_LIMITS]>,
}

impl BudgetQuestion {
    pub(super) fn new(secret: &KeySecret, decision: &BudgetDecision<'_>, mark: u64) -> Self {
        let has_id = !decision.id.is_empty();
        let (code, digest, hold_for) = match decision.op {
            BudgetOp::Ask(asked) => (code_of(asked), asked.digest(), asked.hold_for.map_or(0, |span| span.0)),
            BudgetOp::Settle(used) => (op::SETTLE, used.digest(), 0),
            BudgetOp::Debit(used) => (if has_id { op::FORCE_ONCE } else { op::FORCE }, used.digest(), 0),
            BudgetOp::Refund(..) => (if has_id { op::REFUND_ONCE } else { op::REFUND }, 0, 0),
            BudgetOp::Reset(_) => (op::RESET, 0, 0),
        };
        let has_record =
            matches!(code, op::CHARGE_ONCE | op::HOLD | op::SETTLE | op::FORCE_ONCE | op::REFUND_ONCE);
        let head = BudgetHead {
            op: code as f64,
            has_record: f64::from(u8::from(has_record)),
            digest: digest as f64,
            mark: mark as f64,
            hold_for: hold_for.min(CEILING) as f64,
        };
        Self { head, units: units_of_all(secret, decision) }
    }

    /// True if its id has a record of the kind that other decisions have.
    pub(super) fn needs_once(&self) -> bool {
        [op::CHARGE_ONCE, op::FORCE_ONCE].map(|code| code as f64).contains(&self.head.op)
    }
}

fn code_of(asked: &Ask) -> u64 {
    match (asked.peek, asked.has_id, asked.hold_for) {
        (true, ..) => op::PEEK,
        (_, _, Some(_)) => op::HOLD,
        (_, true, None) => op::CHARGE_ONCE,
        (_, false, None) => op::CHARGE,
    }
}

fn units_of_all(secret: &KeySecret, decision: &BudgetDecision<'_>) -> SmallVec<[BudgetUnits; MAX_LIMITS]> {
    let BudgetDecision { strategy, costed, subject, op, .. } = decision;
    let mut name = Vec::with_capacity(128);
    let limits = strategy.limits().iter().zip(&costed.limits).enumerate();
    let units = limits.map(|(index, (limit, costs))| {
        name.clear();
        key::write_name(&mut name, strategy, limit, subject);
        let (asked, least) = asked_of(*op, index, costs);
        let number = |units: Option<u64>| units.map_or(-1.0, |units| units.min(CEILING) as f64);
        BudgetUnits {
            asked: number(asked),
            least: number(least),
            digest: (secret.hash(&name) >> 76) as f64,
            phase: if costs.algorithm.is_spread() { key::phase(&name) as f64 } else { 0.0 },
        }
    });
    units.collect()
}

/// The units that are asked of a limit, and the least that may be granted instead.
fn asked_of(op: BudgetOp<'_>, index: usize, limit: &BudgetLimit) -> (Option<u64>, Option<u64>) {
    match op {
        BudgetOp::Ask(asked) => {
            let asked = asked.of(limit.cost);
            (Some(asked.cost), asked.at_least)
        }
        BudgetOp::Settle(used) | BudgetOp::Debit(used) => (used.of(limit.cost), None),
        BudgetOp::Refund(units, limits) => (limits.has(index).then_some(units), None),
        BudgetOp::Reset(limits) => (limits.has(index).then_some(0), None),
    }
}
