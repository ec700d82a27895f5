//! Encodes decisions for the script. `lua/README.md` is the contract.

use std::io::Write;
use std::sync::Arc;

use weir_core::algorithm::budget::{BudgetLimit, LimitCost};
use weir_units::{CEILING, Micros};

use super::numbers::{BudgetGroupHead, BudgetLimitNumbers};
use crate::redis::decisions::DecisionRequest;
use crate::redis::decisions::encode::{put_head, put_limit, repeats};

/// Encodes `requests`. Adjacent ones with the same limits form a group, which lists its limits once.
pub(in crate::redis::decisions) fn encode(
    requests: &[Arc<DecisionRequest>],
    now: Option<Micros>,
    out: &mut impl Write,
) {
    let groups = || requests.chunk_by(|a, b| a.shares_costs(b));
    put_head(now, groups().count(), repeats(requests), out);
    for group in groups() {
        let Some(costed) = group.first().and_then(|first| first.budget()).map(|budget| &budget.costed) else {
            continue;
        };
        let head = BudgetGroupHead {
            count: costed.limits.len() as f64,
            decisions: group.len() as f64,
            grain: costed.hold.map_or(0.0, |bounds| bounds.grain() as f64),
            known_for: costed.hold.map_or(0.0, |bounds| bounds.known_for.0.min(CEILING) as f64),
        };
        head.put(out);
        for limit in &costed.limits {
            put_limit(&limit.algorithm, out);
            BudgetLimitNumbers::new(limit).put(out);
        }
        for question in group.iter().filter_map(|request| request.budget()).map(|budget| &budget.question) {
            question.head.put(out);
            question.units.iter().for_each(|units| units.put(out));
        }
    }
}

impl BudgetLimitNumbers {
    fn new(limit: &BudgetLimit) -> Self {
        let number = |level: Option<u64>| level.map_or(-1.0, |level| level.min(CEILING) as f64);
        Self {
            debt_level: number(limit.algorithm.debt_level()),
            name: match limit.cost {
                LimitCost::Request => 0.0,
                LimitCost::Fixed(_) => -1.0,
                LimitCost::Named(name) => (name + 1) as f64,
            },
            at_once: f64::from(u8::from(limit.at_once)),
            near: number(limit.near_level()),
        }
    }
}
