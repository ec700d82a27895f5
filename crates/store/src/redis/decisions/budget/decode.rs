//! Decodes replies of the script of budgets. `lua/README.md` is the contract.

use std::sync::Arc;

use redis::Value;
use weir_core::algorithm::budget::{BudgetLimitVerdict, BudgetVerdict, CostedLimits, SettleOutcome};
use weir_units::{Micros, Retry};

use crate::redis::callers::Replies;
use crate::redis::codes::{budget_outcome as outcome, budget_status as status};
use crate::redis::decisions::DecisionRequest;
use crate::redis::decisions::decode::{Tail, read_cause, read_retry};
use crate::redis::decisions::reason::read_reason;
use crate::redis::decisions::replay::replay;
use crate::redis::reply::{doubles, garbled, next_whole, packed, whole};
use crate::{StoreError, Verdicts};

/// Decodes the answers to `requests`. An error means that the whole reply is unusable.
pub(in crate::redis::decisions) fn decode(
    requests: &[Arc<DecisionRequest>],
    reply: &Value,
) -> Result<Replies<Verdicts>, StoreError> {
    let (packed, reasons) = packed(reply)?;
    let Tail { now, short, admitted } = Tail::read(packed)?;
    let (mut numbers, mut reasons) = (doubles(packed), reasons.iter());
    let (first, others) = requests.split_at_checked(short).ok_or_else(garbled)?;
    let mut replies = replay(first, now, admitted, &mut numbers, &mut reasons)?;
    replies.reserve(others.len());
    for request in others {
        let costed = &request.budget().ok_or_else(garbled)?.costed;
        let verdict = read_decision(costed, now, &mut numbers, &mut reasons)?;
        replies.push(verdict.map(|verdict| Verdicts::of_costs(costed, verdict)));
    }
    Ok(replies)
}

fn read_decision<'a>(
    costed: &CostedLimits,
    now: Micros,
    numbers: &mut impl Iterator<Item = f64>,
    reasons: &mut impl Iterator<Item = &'a Value>,
) -> Result<Result<BudgetVerdict, StoreError>, StoreError> {
    let allowed = match next_whole(numbers)? {
        status::DENIED => false,
        status::ALLOWED => true,
        status::FAILED => return read_reason(reasons.next().ok_or_else(garbled)?).map(Err),
        status::OTHER_CONTENTS => return Ok(Err(StoreError::OtherContents)),
        status::TOO_MANY_ENDS => return Ok(Err(StoreError::TooManyEnds)),
        _ => return Err(garbled()),
    };
    let (fitted, applied) = (next_whole(numbers)? != 0, next_whole(numbers)? != 0);
    let wait = Micros(next_whole(numbers)?);
    let held_for = next_option(numbers)?.map(Micros);
    let outcome = match next_whole(numbers)? {
        outcome::NONE => None,
        outcome::SETTLED => Some(SettleOutcome::Settled),
        outcome::LATE => Some(SettleOutcome::Late),
        outcome::UNKNOWN => Some(SettleOutcome::Unknown),
        _ => return Err(garbled()),
    };
    let mut verdict = BudgetVerdict {
        now,
        allowed,
        fitted,
        applied,
        wait,
        held_for,
        outcome,
        retry: Retry::Now,
        reset_after: Micros::ZERO,
        limits: costed.limits.iter().map(|_| read_limit(numbers)).collect::<Result<_, _>>()?,
    };
    for (limit, one) in costed.limits.iter().zip(&mut verdict.limits) {
        if limit.near_percent.is_none() {
            one.near = None;
        }
        if !limit.algorithm.is_shadow() {
            verdict.retry = verdict.retry.max(one.retry);
            verdict.reset_after = verdict.reset_after.max(one.reset_after);
        }
    }
    Ok(Ok(verdict))
}

fn read_limit(numbers: &mut impl Iterator<Item = f64>) -> Result<BudgetLimitVerdict, StoreError> {
    let cause = read_cause(numbers)?;
    let cost = next_whole(numbers)?;
    let (granted, charged) = (next_option(numbers)?, next_option(numbers)?);
    let uncharged = next_whole(numbers)?;
    let remaining = next_whole(numbers)?;
    let retry = read_retry(numbers)?;
    let reset_after = Micros(next_whole(numbers)?);
    let (held, level_before) = (next_whole(numbers)?, next_whole(numbers)?);
    let (near, crossed_near) = match next_whole(numbers)? {
        flags @ 0..=3 => (Some(flags & 1 != 0), flags & 2 != 0),
        _ => return Err(garbled()),
    };
    Ok(BudgetLimitVerdict {
        cause,
        cost,
        granted,
        charged,
        uncharged,
        remaining,
        retry,
        reset_after,
        held,
        near,
        crossed_near,
        level_before,
    })
}

/// A number, or -1 for none.
fn next_option(numbers: &mut impl Iterator<Item = f64>) -> Result<Option<u64>, StoreError> {
    match numbers.next().ok_or_else(garbled)? {
        none if none < 0.0 => Ok(None),
        some => whole(some).map(Some),
    }
}
