//! `ShouldAllow`: the request as a question, the answer as a response.

use std::time::Instant;

use prost_types::Duration;

use super::message::{Facts, Templates};
use crate::algorithm::{Cause, LimitVerdict, Verdict};
use crate::limiter::{Answer, Ask, Outcome};
use crate::proto::v1::{LimitStatus, Reason, ShouldAllowRequest, ShouldAllowResponse};
use crate::strategy::{Attributes, Limit, Listed, Strategy};
use crate::units::{Micros, Retry};

/// What a call takes when it does not say.
pub(super) const DEFAULT_COST: u64 = 1;
/// The sentence where a policy denies: nobody knows how long to wait.
const STORE_FAILURE: &str = "The rate limit cannot be checked at the moment. Try again later";
/// The sentence where a list denies: no wait and no smaller cost will help.
const DENY_LIST: &str = "Access denied. This consumer is on the deny list";

pub(super) fn ask(request: &ShouldAllowRequest, deadline: Option<Instant>) -> Ask<'_> {
    Ask {
        resource: &request.resource,
        consumer: &request.consumer,
        strategy: &request.strategy,
        cost: request.cost.unwrap_or(DEFAULT_COST),
        peek: request.peek,
        attributes: Attributes::of(&request.attributes),
        deadline,
    }
}

pub(super) fn response(answer: &Answer<'_>, cost: u64, templates: &Templates) -> ShouldAllowResponse {
    match &answer.outcome {
        Outcome::Decided { verdict, limits } => decided(answer.strategy, verdict, limits, cost, templates),
        Outcome::Listed(listed) => self::listed(*listed),
        Outcome::Policy { allowed } => ShouldAllowResponse {
            allowed: *allowed,
            reason: Reason::StoreFailure.into(),
            message: if *allowed { String::new() } else { STORE_FAILURE.to_owned() },
            degraded: true,
            ..ShouldAllowResponse::default()
        },
    }
}

/// No limit was asked, so there is nothing to say of any.
fn listed(listed: Listed) -> ShouldAllowResponse {
    let (allowed, reason, message) = match listed {
        Listed::Deny => (false, Reason::DenyList, DENY_LIST),
        Listed::Allow => (true, Reason::AllowList, ""),
    };
    ShouldAllowResponse {
        allowed,
        reason: reason.into(),
        message: message.to_owned(),
        ..ShouldAllowResponse::default()
    }
}

fn decided(
    strategy: &Strategy,
    verdict: &Verdict,
    verdicts: &[LimitVerdict],
    cost: u64,
    templates: &Templates,
) -> ShouldAllowResponse {
    let allowed = verdict.allowed;
    let limit = strategy.algorithms().iter().map(|algorithm| algorithm.limit()).min();
    let retry = verdicts.iter().fold(Retry::Now, |longest, one| longest.max(one.retry));
    let retry_after = if allowed { None } else { wait(retry) };
    let facts = Facts { retry_after, cost, limit: limit.unwrap_or(0) };
    let named = || strategy.limits().iter().zip(verdicts);
    ShouldAllowResponse {
        allowed,
        limit,
        remaining: verdicts.iter().map(|one| one.remaining).min(),
        retry_after: retry_after.map(duration),
        reset_after: verdicts.iter().map(|one| one.reset_after).max().map(duration),
        reason: reason(allowed, retry).into(),
        denied_by: named()
            .filter(|(_, one)| !allowed && !one.fits())
            .map(|(limit, _)| limit.name.to_string())
            .collect(),
        limits: named().map(|(limit, one)| status(limit, one)).collect(),
        message: if allowed { String::new() } else { templates.render(facts) },
        degraded: false,
    }
}

fn status(limit: &Limit, verdict: &LimitVerdict) -> LimitStatus {
    let cause = match verdict.cause {
        None => "",
        Some(Cause::Count) => "count",
        Some(Cause::MinGap) => "min_gap",
        Some(Cause::Never) => "never",
    };
    LimitStatus {
        name: limit.name.to_string(),
        allowed: verdict.fits(),
        limit: limit.algorithm.limit(),
        remaining: verdict.remaining,
        retry_after: wait(verdict.retry).map(duration),
        reset_after: Some(duration(verdict.reset_after)),
        cause: cause.to_owned(),
    }
}

fn reason(allowed: bool, retry: Retry) -> Reason {
    match retry {
        _ if allowed => Reason::Ok,
        Retry::Never => Reason::Never,
        Retry::Now | Retry::After(_) => Reason::Limited,
    }
}

fn wait(retry: Retry) -> Option<Micros> {
    match retry {
        Retry::After(wait) => Some(wait),
        Retry::Now | Retry::Never => None,
    }
}

/// Exact: both sides are integers, and no span of ours comes near the largest duration.
pub(super) fn duration(span: Micros) -> Duration {
    let nanos = (span.0 % 1_000_000) * 1_000;
    Duration {
        seconds: i64::try_from(span.0 / 1_000_000).unwrap_or(i64::MAX),
        nanos: i32::try_from(nanos).unwrap_or(0),
    }
}
