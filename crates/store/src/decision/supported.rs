//! Operations that are defined, by limit.

use super::Decision;
use crate::StoreError;
use weir_core::algorithm::{Algorithm, Engine, Op};

/// Refuses an operation that is not defined for these limits, before the store is asked.
pub fn check_supported(decision: &Decision<'_>) -> Result<(), StoreError> {
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
