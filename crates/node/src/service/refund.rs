//! `Refund`, and the state of limits after it.

use prost::Message as _;
use tonic::Status;
use weir_core::algorithm::LimitVerdict;
use weir_core::strategy::Limit;
use weir_grpc::CallContext;
use weir_proto::v1::{LimitState, RefundRequest, RefundResponse};
use weir_store::Store;

use super::question_of::question_of;
use super::span::duration;
use super::{Decisions, status};
use crate::limiter::{DEFAULT_COST, Question, Shaping, Undone};

impl<S: Store> Decisions<S> {
    /// Gives back a call's cost.
    pub async fn refund(
        &self,
        request: &RefundRequest,
        context: &CallContext,
    ) -> Result<RefundResponse, Status> {
        weir_grpc::check_size(request.encoded_len(), self.largest)?;
        let inline = self.inline_of(request.inline.as_ref(), self.rights.of(context))?;
        let shaping = inline.map(|inline| Box::new(Shaping { inline: Some(inline), ..Shaping::default() }));
        let cost = request.cost.unwrap_or(DEFAULT_COST);
        let question = Question { shaping, ..question_of!(request, cost, context, self.rights) };
        let undone = self.limiter.refund(&question, &request.limits, &request.id).await;
        Ok(response(&undone.map_err(status::new)?))
    }
}

fn response(undone: &Undone<'_>) -> RefundResponse {
    RefundResponse { applied: undone.applied, limits: states(undone) }
}

pub(super) fn states(undone: &Undone<'_>) -> Vec<LimitState> {
    undone.limits.iter().map(|(limit, verdict)| state(limit, verdict)).collect()
}

pub(super) fn state(limit: &Limit, verdict: &LimitVerdict) -> LimitState {
    LimitState {
        name: limit.name.to_string(),
        limit: limit.algorithm.limit(),
        remaining: verdict.remaining,
        reset_after: Some(duration(verdict.reset_after)),
    }
}
