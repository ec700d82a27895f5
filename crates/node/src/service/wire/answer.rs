//! `ShouldAllowResponse`, encoded directly from an answer.
//!
//! Fields are in the order of their numbers, and default values are omitted, so the bytes are those of any other
//! implementation.

use tonic::Status;
use weir_core::algorithm::budget::BudgetVerdict;
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::{Limit, Listed, Strategy};
use weir_proto::v1::Reason;
use weir_units::{Micros, Retry, WaitFor};

use super::costed;
use super::reasons::{cause, reason, wait};
use crate::guard::BanHit;
use crate::limiter::{Answer, AskedFields, LimitsDecision};
use crate::service::http_headers;
use crate::service::message::{Facts, Templates};
use crate::service::put::{
    MOST_PACKED, Packed, duration, long_duration, nested, number, optional, put, text, truth,
};
use crate::settle::Outcome;

/// Message if a policy denies: the wait is not known.
pub const STORE_FAILURE: &str = "The rate limit cannot be checked at the moment. Try again later";
/// Message if a list denies: no wait and no smaller cost will help.
const DENY_LIST: &str = "Access denied. This consumer is on the deny list";

/// Appends the response for `answer` to a question of `cost`.
pub(crate) fn response(
    out: &mut Vec<u8>,
    answer: &Answer<'_, '_>,
    asked: AskedFields,
    templates: &Templates,
) {
    match &answer.outcome {
        Outcome::Decided(LimitsDecision { costs: Some(costs), .. })
        | Outcome::Local(LimitsDecision { costs: Some(costs), .. }) => {
            over_costs(out, answer, costs, asked, templates);
        }
        Outcome::Decided(LimitsDecision { verdict, limits, costs: None }) => {
            decided::<false>(out, answer.strategy, verdict, limits, asked, templates);
            if let Some(advice) = answer.advice {
                http_headers::write(out, answer.strategy, verdict, limits, advice);
            }
            if !verdict.allowed {
                let (retry, fixed) = (longest_wait(limits), only_fixed(answer.strategy));
                let cost = fixed.unwrap_or(asked.cost);
                denial_valid_for(out, templates.valid_for(answer.strategy, retry, cost));
            }
            if answer.strategy.approximate().is_some() {
                out.extend_from_slice(&APPROXIMATE);
            }
        }
        Outcome::Local(LimitsDecision { verdict, limits, .. }) => {
            decided::<true>(out, answer.strategy, verdict, limits, asked, templates);
            if let Some(advice) = answer.advice {
                http_headers::write(out, answer.strategy, verdict, limits, advice);
            }
            out.extend_from_slice(&LOCAL);
        }
        Outcome::Listed(Listed::Deny) => plain(out, false, Reason::DenyList, DENY_LIST),
        Outcome::Listed(Listed::Allow) => plain(out, true, Reason::AllowList, ""),
        Outcome::Banned(ban) => banned(out, answer.strategy, *ban, asked, templates),
        Outcome::Policy { allowed } => {
            let message = if *allowed { "" } else { STORE_FAILURE };
            plain(out, *allowed, Reason::StoreFailure, message);
            truth(out, 10, true);
        }
    }
}

#[cold]
fn over_costs(
    out: &mut Vec<u8>,
    answer: &Answer<'_, '_>,
    costs: &BudgetVerdict,
    asked: AskedFields,
    templates: &Templates,
) {
    let (is_local, said) = match &answer.outcome {
        Outcome::Local(said) => (true, Some(said)),
        Outcome::Decided(said) => (false, Some(said)),
        _ => (false, None),
    };
    costed::decided(out, (answer.strategy, is_local), costs, asked, templates);
    if let (Some(advice), Some(LimitsDecision { verdict, limits, .. })) = (answer.advice, said) {
        http_headers::write(out, answer.strategy, verdict, limits, advice);
    }
    if is_local {
        return out.extend_from_slice(&LOCAL);
    }
    if !costs.allowed {
        let retry = costed::denied_for(answer.strategy, costs);
        denial_valid_for(out, templates.valid_for(answer.strategy, retry, 1));
    }
    costed::held_for(out, costs);
}

/// Field 17, true. Its tag has two bytes.
const APPROXIMATE: [u8; 3] = [0x88, 0x01, 1]; // 17 << 3 | 0, as a varint

/// Field 18, true. Its tag has two bytes.
const LOCAL: [u8; 3] = [0x90, 0x01, 1]; // 18 << 3 | 0, as a varint

fn denial_valid_for(out: &mut Vec<u8>, valid: Option<Micros>) {
    if let Some(valid) = valid {
        long_duration(out, 16, valid);
    }
}

/// The fixed cost of the only limit, of an answer that was decided as without costs by limit: to a reservation, or of a limit
/// that nodes count.
fn only_fixed(strategy: &Strategy) -> Option<u64> {
    strategy.costed()?.only_fixed()
}

fn longest_wait(limits: &[LimitVerdict]) -> Retry {
    limits.iter().fold(Retry::Now, |longest, one| longest.max(one.retry))
}

/// Without limits, because none was asked.
fn plain(out: &mut Vec<u8>, allowed: bool, reason: Reason, message: &str) {
    truth(out, 1, allowed);
    number(out, 6, reason as u64);
    text(out, 9, message);
}

/// The ban ends at the same time for all costs, and no call makes it longer.
#[cold]
fn banned(out: &mut Vec<u8>, strategy: &Strategy, ban: BanHit, asked: AskedFields, templates: &Templates) {
    let BanHit { limit, wait } = ban;
    duration(out, 4, Some(wait));
    number(out, 6, Reason::Banned as u64);
    if let Some(limit) = strategy.limits().get(limit) {
        text(out, 7, &limit.name);
    }
    text(out, 9, &format!("This consumer is banned. Try again in {}", WaitFor(wait)));
    if asked.granted {
        optional(out, 12, Some(0));
    }
    if asked.applied {
        optional(out, 13, Some(0));
    }
    if asked.headers {
        http_headers::write_retry_after(out, wait);
    }
    denial_valid_for(out, templates.valid_for_ban(wait));
}

/// With `IS_LOCAL` the node decided by itself: the same fields, for another reason.
fn decided<const IS_LOCAL: bool>(
    out: &mut Vec<u8>,
    strategy: &Strategy,
    verdict: &Verdict,
    verdicts: &[LimitVerdict],
    asked: AskedFields,
    templates: &Templates,
) {
    let shapes = asked.granted || strategy.is_special() || IS_LOCAL;
    if let ([limit], [one], true) = (strategy.limits(), verdicts, verdict.allowed && !shapes)
        && passed(out, limit, one)
    {
        return;
    }
    let allowed = verdict.allowed;
    let enforced = || {
        let all = strategy.limits().iter().zip(verdicts);
        all.filter(|(limit, _)| !limit.algorithm.is_shadow())
    };
    let limit = enforced().map(|(limit, _)| limit.algorithm.limit()).min();
    let retry = longest_wait(verdicts);
    let retry_after = if allowed { None } else { wait(retry) };
    let named = || strategy.limits().iter().zip(verdicts);
    truth(out, 1, allowed);
    optional(out, 2, limit);
    optional(out, 3, enforced().map(|(_, one)| one.remaining).min());
    duration(out, 4, retry_after);
    duration(out, 5, enforced().map(|(_, one)| one.reset_after).max());
    let reason = if IS_LOCAL { Reason::StoreFailure } else { reason(allowed, retry) };
    number(out, 6, reason as u64);
    if !allowed {
        enforced().filter(|(_, one)| !one.fits()).for_each(|(limit, _)| text(out, 7, &limit.name));
    }
    let decision = LimitsDecision { verdict: *verdict, limits: verdicts, costs: None };
    let fixed = only_fixed(strategy);
    let cost = fixed.unwrap_or(asked.cost);
    for (index, (limit, one)) in named().enumerate() {
        let near = strategy.marks().map(|marks| decision.near((strategy, marks), index, (one, asked.peek)));
        nested(out, 8, |out| {
            status(out, limit, one);
            if let Some(cost) = fixed {
                number(out, 8, cost);
                number(out, 9, if allowed { cost } else { 0 });
            }
            if let Some((is_near, crossed)) = near {
                truth(out, 11, is_near);
                truth(out, 12, crossed);
            }
        });
    }
    if !allowed {
        let facts = Facts { retry, cost, limit: limit.unwrap_or(0) };
        text(out, 9, &templates.render(facts));
    }
    truth(out, 10, IS_LOCAL);
    if strategy.paces() {
        duration(out, 11, Some(verdict.wait));
    }
    if asked.granted {
        optional(out, 12, Some(verdict.granted));
    }
    if asked.applied {
        optional(out, 13, Some(verdict.applied.into()));
    }
}

/// Fast path for the common answer: allowed, under one limit, so the same fields are written for the decision and for
/// its limit. Writes nothing for any other answer, and returns false. Saves 5 to 9 % of the instructions of a
/// decision (unary 5,649 → 5,357, batch 3,283 → 2,983).
#[inline]
fn passed(out: &mut Vec<u8>, limit: &Limit, verdict: &LimitVerdict) -> bool {
    let (most, left) = (limit.algorithm.limit(), verdict.remaining);
    if !verdict.fits() || verdict.retry != Retry::Now || most.max(left) > MOST_PACKED {
        return false;
    }
    let name = limit.name.as_bytes();
    let reset = Packed::duration(5, verdict.reset_after);
    let (most_of_all, left_of_all) =
        (Packed::NOTHING.number(1, 1).number(2, most), Packed::NOTHING.number(3, left));
    // The status of a limit has the same values, each in the field after.
    let most_of_limit = most_of_all.in_next_fields([0, 2]);
    let left_of_limit = if left == 0 { Packed::NOTHING } else { left_of_all.in_next_fields([0]) };
    let further = most_of_limit.length + left_of_limit.length + reset.length;
    let length = 2 + name.len() + further as usize;
    if length >= 0x80 || name.is_empty() {
        return false;
    }
    put(out, most_of_all);
    put(out, left_of_all);
    put(out, reset);
    let reason = [6 << 3, Reason::Ok as u8];
    let begin = [8 << 3 | 2, length as u8, 1 << 3 | 2, name.len() as u8];
    out.extend_from_slice(&[reason[0], reason[1], begin[0], begin[1], begin[2], begin[3]]);
    out.extend_from_slice(name);
    put(out, most_of_limit);
    put(out, left_of_limit);
    put(out, reset.under(6 << 3 | 2));
    true
}

fn status(out: &mut Vec<u8>, limit: &Limit, verdict: &LimitVerdict) {
    text(out, 1, &limit.name);
    truth(out, 2, verdict.fits());
    number(out, 3, limit.algorithm.limit());
    number(out, 4, verdict.remaining);
    duration(out, 5, wait(verdict.retry));
    duration(out, 6, Some(verdict.reset_after));
    text(out, 7, cause(verdict.cause));
}

/// Appends one result as field 1: the output of `header`, then the response as field `first`, or the error as the
/// field after it.
pub(crate) fn result(
    out: &mut Vec<u8>,
    first: u32,
    header: impl FnOnce(&mut Vec<u8>),
    answer: Result<impl FnOnce(&mut Vec<u8>), &Status>,
) {
    nested(out, 1, |out| {
        header(out);
        match answer {
            Ok(write) => nested(out, first, write),
            Err(status) => nested(out, first + 1, |out| error(out, status)),
        }
    });
}

fn error(out: &mut Vec<u8>, status: &Status) {
    number(out, 1, i32::from(status.code()).unsigned_abs().into());
    text(out, 2, status.message());
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use weir_core::algorithm::{Algorithm, Rate};
    use weir_core::strategy::{FailurePolicy, Scope};
    use weir_proto::v1::{LimitStatus, ShouldAllowResponse};

    #[test]
    fn the_usual_answer_is_written_as_the_generated_type_writes_it() {
        let templates = Templates::new(&weir_config::DenialMessages::default());
        let edges = (0..50).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
        for (number, name) in edges.flat_map(|number| [1, 60, 127].map(|length| (number, "n".repeat(length))))
        {
            let rate = Rate { count: 1_000_000, period: Micros::from_secs(1) };
            let algorithm = Algorithm::bucket(number.max(1), rate).unwrap();
            let limits = vec![Limit { name: name.clone().into(), scope: Scope::default(), algorithm }];
            let strategy = Strategy::new("s", limits, false, FailurePolicy::Error).unwrap();
            let said = LimitVerdict {
                cause: None,
                remaining: number / 3,
                retry: Retry::Now,
                reset_after: Micros(number / 2),
                level_before: 0,
            };
            let verdict = Verdict {
                now: Micros::ZERO,
                allowed: true,
                fitted: true,
                granted: 1,
                wait: Micros::ZERO,
                applied: true,
            };
            let mut out = Vec::new();
            decided::<false>(
                &mut out,
                &strategy,
                &verdict,
                std::slice::from_ref(&said),
                AskedFields::plain(1),
                &templates,
            );
            let (limit, remaining) = (number.max(1), number / 3);
            let seconds = (number / 2 / 1_000_000) as i64;
            let nanos = (number / 2 % 1_000_000 * 1_000) as i32;
            let reset_after = Some(prost_types::Duration { seconds, nanos });
            let of_limit =
                LimitStatus { name, allowed: true, limit, remaining, reset_after, ..LimitStatus::default() };
            let expected = ShouldAllowResponse {
                allowed: true,
                limit: Some(limit),
                remaining: Some(remaining),
                reset_after,
                reason: Reason::Ok.into(),
                limits: vec![of_limit],
                ..ShouldAllowResponse::default()
            };
            assert_eq!(out, expected.encode_to_vec(), "{number}");
        }
    }
}
