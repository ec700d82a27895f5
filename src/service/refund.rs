//! `Refund`, and how limits stand after something was taken back.

use std::time::Instant;

use super::should_allow::{DEFAULT_COST, duration};
use crate::limiter::{Ask, Undone};
use crate::proto::v1::{LimitState, RefundRequest, RefundResponse};
use crate::strategy::Attributes;

pub(super) fn ask(request: &RefundRequest, deadline: Option<Instant>) -> Ask<'_> {
    Ask {
        resource: &request.resource,
        consumer: &request.consumer,
        strategy: &request.strategy,
        cost: request.cost.unwrap_or(DEFAULT_COST),
        peek: false,
        attributes: Attributes::of(&request.attributes),
        deadline,
    }
}

pub(super) fn response(undone: &Undone<'_>) -> RefundResponse {
    RefundResponse { applied: undone.applied, limits: states(undone) }
}

pub(super) fn states(undone: &Undone<'_>) -> Vec<LimitState> {
    let state = |(limit, verdict): &(&crate::strategy::Limit, crate::algorithm::LimitVerdict)| LimitState {
        name: limit.name.to_string(),
        limit: limit.algorithm.limit(),
        remaining: verdict.remaining,
        reset_after: Some(duration(verdict.reset_after)),
    };
    undone.limits.iter().map(state).collect()
}
