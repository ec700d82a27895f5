//! `Reserve`, `CancelReservation`, `Debit` and `Settle`.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message as _;
use tonic::Status;
use weir_core::algorithm::budget::SettleOutcome;
use weir_grpc::CallContext;
use weir_proto::v1::{
    CancelReservationRequest, CancelReservationResponse, DebitRequest, DebitResponse, DebitedLimit,
    ReserveRequest, ReserveResponse, SettleOutcome as ProtoOutcome, SettleRequest, SettleResponse,
    SettledLimit, ShouldAllowResponse,
};
use weir_store::{Store, Verdicts};
use weir_units::Micros;

use super::question_of::question_of;
use super::refund::state;
use super::span::{duration, micros};
use super::wire;
use super::{Decisions, status};
use crate::access::SnapshotRights;
use crate::limiter::{
    Adjusted, Answer, Begun, DEFAULT_COST, InlineLimit, InvalidField, LimitsDecision, NamedCost, Question,
    SettledCall, Shaping,
};
use crate::settle::Outcome;

impl<S: Store> Decisions<S> {
    /// Admits a call that starts within `max_wait`.
    pub async fn reserve(
        self: &Arc<Self>,
        request: &ReserveRequest,
        context: &CallContext,
    ) -> Result<ReserveResponse, Status> {
        weir_grpc::check_size(request.encoded_len(), self.largest)?;
        let inline = self.inline_of(request.inline.as_ref(), self.rights.of(context))?;
        let question = reservation(request, inline, (context, &self.rights)).map_err(status::new)?;
        let (mut answered, mut waiting) = (None, None);
        self.limiter.round().decide(std::iter::once(&question), |begun| match begun {
            Begun::Answered(answer) => {
                answered =
                    Some(answer.map_err(status::new).and_then(|answer| self.reserved(&answer, &question)));
            }
            Begun::Waiting(later) => waiting = Some(later),
        });
        if let Some(mut waiting) = waiting {
            let mut verdicts = Verdicts::default();
            let answer = self.limiter.wait(&mut waiting, &mut verdicts).await.map_err(status::new)?;
            return self.reserved(&answer, &question);
        }
        answered.unwrap_or_else(|| Err(Status::internal("the call has no answer")))
    }

    fn reserved(&self, answer: &Answer<'_, '_>, question: &Question<'_>) -> Result<ReserveResponse, Status> {
        let mut bytes = Vec::new();
        wire::response(&mut bytes, answer, question.asked(), &self.templates);
        let decision = ShouldAllowResponse::decode(&bytes[..]);
        let mut decision = decision.map_err(|_| Status::internal("the answer cannot be written"))?;
        // It is about a start within `max_wait`, and says nothing of other calls.
        decision.denial_valid_for = None;
        let (wait, applied) = match &answer.outcome {
            Outcome::Decided(LimitsDecision { verdict, .. })
            | Outcome::Local(LimitsDecision { verdict, .. }) => (verdict.wait, verdict.applied),
            Outcome::Listed(_) | Outcome::Banned(_) | Outcome::Policy { .. } => (Micros::ZERO, false),
        };
        Ok(ReserveResponse { decision: Some(decision), wait: Some(duration(wait)), applied })
    }

    /// Gives back the part that no later reservation depends on.
    pub async fn cancel_reservation(
        &self,
        request: &CancelReservationRequest,
        context: &CallContext,
    ) -> Result<CancelReservationResponse, Status> {
        weir_grpc::check_size(request.encoded_len(), self.largest)?;
        let inline = self.inline_of(request.inline.as_ref(), self.rights.of(context))?;
        let shaping = Some(Box::new(Shaping { inline, ..Shaping::under(&request.id) }));
        let question = Question { shaping, ..question_of!(request, 0, context, self.rights) };
        let adjusted = self.limiter.cancel(&question).await.map_err(status::new)?;
        let limits = adjusted.limits.iter().map(|(limit, one, _)| state(limit, one)).collect();
        let Adjusted { applied: cancelled, cancelled_before, .. } = adjusted;
        Ok(CancelReservationResponse { cancelled, limits, cancelled_before })
    }

    /// Charges a call's actual use.
    pub async fn debit(
        &self,
        request: &DebitRequest,
        context: &CallContext,
    ) -> Result<DebitResponse, Status> {
        weir_grpc::check_size(request.encoded_len(), self.largest)?;
        let inline = self.inline_of(request.inline.as_ref(), self.rights.of(context))?;
        let shaping = Shaping { inline, costs: named(&request.costs), ..Shaping::under(&request.id) };
        let (shaping, cost) = (Some(Box::new(shaping)), request.cost.unwrap_or(DEFAULT_COST));
        let question = Question { shaping, ..question_of!(request, cost, context, self.rights) };
        // Beside costs by name, no cost is meant where none is written.
        let meant = request.cost.or((request.costs.is_empty()).then_some(DEFAULT_COST));
        Ok(debited(&self.limiter.debit(&question, meant).await.map_err(status::new)?))
    }

    /// Replaces the estimate of a held call by its actual use.
    pub async fn settle(
        &self,
        request: &SettleRequest,
        context: &CallContext,
    ) -> Result<SettleResponse, Status> {
        weir_grpc::check_size(request.encoded_len(), self.largest)?;
        let shaping = Shaping { costs: named(&request.costs), ..Shaping::under(&request.id) };
        let (shaping, cost) = (Some(Box::new(shaping)), request.cost.unwrap_or(0));
        let question = Question { shaping, ..question_of!(request, cost, context, self.rights) };
        Ok(settled(&self.limiter.settle_hold(&question, request.cost).await.map_err(status::new)?))
    }
}

/// The costs of a debit or a settlement, by name.
fn named(costs: &HashMap<String, u64>) -> Vec<NamedCost<'_>> {
    let mut named: Vec<NamedCost<'_>> =
        costs.iter().map(|(name, cost)| NamedCost { name, cost: *cost, at_least: None }).collect();
    named.sort_unstable_by_key(|cost| cost.name);
    named
}

fn debited(adjusted: &Adjusted<'_>) -> DebitResponse {
    let limits = adjusted.limits.iter().map(|(limit, one, charged)| DebitedLimit {
        name: limit.name.to_string(),
        charged: *charged,
        limit: limit.algorithm.limit(),
        remaining: one.remaining,
        reset_after: Some(duration(one.reset_after)),
    });
    DebitResponse { applied: adjusted.applied, fitted: adjusted.fitted, limits: limits.collect() }
}

fn settled(call: &SettledCall<'_>) -> SettleResponse {
    let outcome = call.outcome.map_or(ProtoOutcome::Unspecified, |outcome| match outcome {
        SettleOutcome::Settled => ProtoOutcome::Settled,
        SettleOutcome::Late => ProtoOutcome::Late,
        SettleOutcome::Unknown => ProtoOutcome::Unknown,
    });
    let limits = call.limits.iter().map(|(limit, one)| SettledLimit {
        name: limit.name.to_string(),
        granted: one.granted.unwrap_or(0),
        used: one.cost,
        charged: one.charged.unwrap_or(0),
        limit: limit.algorithm.limit(),
        remaining: one.remaining,
        reset_after: Some(duration(one.reset_after)),
        near_limit: one.near == Some(true),
        crossed_near_limit: one.crossed_near,
    });
    SettleResponse { applied: call.applied, outcome: outcome.into(), limits: limits.collect() }
}

fn reservation<'a>(
    request: &'a ReserveRequest,
    inline: Option<InlineLimit<'a>>,
    (context, rights): (&'a CallContext, &SnapshotRights),
) -> Result<Question<'a>, InvalidField> {
    let bound = "it must not be negative, and have less than 10^9 ns";
    let max_wait = request.max_wait.as_ref().map(|span| micros("max_wait", span, bound)).transpose()?;
    let max_wait = Some(max_wait.unwrap_or_default());
    let shaping = Some(Box::new(Shaping { max_wait, inline, ..Shaping::under(&request.id) }));
    Ok(Question { shaping, ..question_of!(request, request.cost.unwrap_or(DEFAULT_COST), context, rights) })
}
