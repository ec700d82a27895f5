//! The keys of a decision, in the order in which the script reads them.

use weir_core::key::{self, KeyPrefix, Operation};

use crate::redis::decisions::KeyEnds;
use crate::{BudgetDecision, BudgetOp};

/// Appends the keys: states, reservations of logs, parts of holds, and the record of the id. Returns the end of each.
pub(in crate::redis::decisions) fn write_keys(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    decision: &BudgetDecision<'_>,
) -> KeyEnds {
    let BudgetDecision { strategy, costed, subject, id, .. } = decision;
    let mut ends = KeyEnds::new();
    for limit in strategy.limits() {
        key::write_key(out, prefix, strategy, limit, subject);
        ends.push(out.len());
    }
    for limit in strategy.limits().iter().filter(|limit| limit.algorithm.is_held()) {
        key::write_held_key(out, prefix, strategy, limit, subject);
        ends.push(out.len());
    }
    let holding = strategy.limits().iter().zip(&costed.limits).filter(|(_, costs)| costs.holds());
    for (limit, _) in holding.filter(|_| costed.hold.is_some()) {
        key::write_parts_key(out, prefix, strategy, limit, subject);
        ends.push(out.len());
    }
    let before = out.len();
    let mut record = |operation| key::write_record_key(out, prefix, operation, strategy, subject, id);
    match decision.op {
        BudgetOp::Ask(asked) if asked.hold_for.is_none() && asked.has_id && !asked.peek => {
            record(Operation::Charge)
        }
        BudgetOp::Debit(_) if !id.is_empty() => record(Operation::Debit),
        BudgetOp::Ask(asked) if asked.hold_for.is_some() && !asked.peek => {
            key::write_hold_key(out, prefix, strategy, subject, id);
        }
        BudgetOp::Settle(_) => key::write_hold_key(out, prefix, strategy, subject, id),
        BudgetOp::Refund(..) if !id.is_empty() => key::write_refund_key(out, prefix, strategy, subject, id),
        BudgetOp::Ask(_) | BudgetOp::Debit(_) | BudgetOp::Refund(..) | BudgetOp::Reset(_) => {}
    }
    if out.len() > before {
        ends.push(out.len());
    }
    ends
}
