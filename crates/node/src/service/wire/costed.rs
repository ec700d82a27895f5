//! The answer over limits with costs of their own.

use weir_core::algorithm::budget::{BudgetLimitVerdict, BudgetVerdict};
use weir_core::strategy::{Limit, Strategy};
use weir_proto::v1::Reason;
use weir_units::Retry;

use super::reasons::{cause, reason, wait};
use crate::limiter::AskedFields;
use crate::service::message::{Facts, Templates};
use crate::service::put::{duration, long_duration, nested, number, optional, text, truth};

const HELD_FOR: u32 = 19;

/// Appends all fields before the headers, of a decision of the store or of the node itself. Costs by name are of different
/// units, so with them there is no smallest limit, no smallest remainder and no sum that was granted.
pub(super) fn decided(
    out: &mut Vec<u8>,
    (strategy, is_local): (&Strategy, bool),
    verdict: &BudgetVerdict,
    asked: AskedFields,
    templates: &Templates,
) {
    let enforced = || both(strategy, verdict).filter(|(limit, _)| !limit.algorithm.is_shadow());
    let allowed = verdict.allowed;
    let is_named = strategy.costed().is_some_and(|costed| !costed.names.is_empty());
    truth(out, 1, allowed);
    if !is_named {
        optional(out, 2, enforced().map(|(limit, _)| limit.algorithm.limit()).min());
        optional(out, 3, enforced().map(|(_, one)| one.remaining).min());
    }
    duration(out, 4, if allowed { None } else { wait(verdict.retry) });
    duration(out, 5, Some(verdict.reset_after));
    let why = if is_local { Reason::StoreFailure } else { reason(allowed, verdict.retry) };
    number(out, 6, why as u64);
    let denies = |one: &BudgetLimitVerdict| !allowed && one.cause.is_some();
    enforced().filter(|(_, one)| denies(one)).for_each(|(limit, _)| text(out, 7, &limit.name));
    for (limit, one) in both(strategy, verdict) {
        nested(out, 8, |out| status(out, limit, one));
    }
    let longest = enforced().filter(|(_, one)| denies(one)).reduce(|longest, other| {
        if longest.1.retry.max(other.1.retry) == longest.1.retry { longest } else { other }
    });
    if let Some((limit, one)) = longest {
        let facts = Facts { retry: verdict.retry, cost: one.cost, limit: limit.algorithm.limit() };
        text(out, 9, &templates.render(facts));
    }
    truth(out, 10, is_local);
    if strategy.paces() {
        duration(out, 11, Some(verdict.wait));
    }
    if asked.granted && !is_named {
        let granted = verdict.limits.iter().filter_map(|one| one.granted).max();
        optional(out, 12, Some(granted.filter(|_| allowed).unwrap_or(0)));
    }
    if asked.applied {
        optional(out, 13, Some(verdict.applied.into()));
    }
}

/// Appends how long the hold lasts.
pub(super) fn held_for(out: &mut Vec<u8>, verdict: &BudgetVerdict) {
    if let Some(span) = verdict.held_for {
        long_duration(out, HELD_FOR, span);
    }
}

/// Returns the time for which the same costs are denied. A settlement may end the denial of a limit that holds something,
/// and a state that is evicted that of a cost above 1; so only the others say it.
pub(super) fn denied_for(strategy: &Strategy, verdict: &BudgetVerdict) -> Retry {
    let denying = both(strategy, verdict).filter(|(limit, one)| {
        !limit.algorithm.is_shadow() && one.cause.is_some() && one.held == 0 && one.cost == 1
    });
    denying.fold(Retry::Now, |longest, (_, one)| longest.max(one.retry))
}

fn both<'v>(
    strategy: &'v Strategy,
    verdict: &'v BudgetVerdict,
) -> impl Iterator<Item = (&'v Limit, &'v BudgetLimitVerdict)> {
    strategy.limits().iter().zip(&verdict.limits)
}

fn status(out: &mut Vec<u8>, limit: &Limit, one: &BudgetLimitVerdict) {
    text(out, 1, &limit.name);
    truth(out, 2, one.cause.is_none());
    number(out, 3, limit.algorithm.limit());
    number(out, 4, one.remaining);
    duration(out, 5, wait(one.retry));
    duration(out, 6, Some(one.reset_after));
    text(out, 7, cause(one.cause));
    number(out, 8, one.cost);
    number(out, 9, one.granted.unwrap_or(0));
    number(out, 10, one.held);
    truth(out, 11, one.near == Some(true));
    truth(out, 12, one.crossed_near);
}
