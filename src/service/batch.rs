//! `ShouldAllowBatch`: many questions in one call, each decided for itself.

use std::time::Instant;

use futures_util::future::join_all;
use tonic::Status;

use super::{RateLimit, status};
use crate::limiter::{LimiterError, check_batch};
use crate::proto::v1::should_allow_result::Result as Ended;
use crate::proto::v1::{
    Error, ShouldAllowBatchRequest, ShouldAllowBatchResponse, ShouldAllowResponse, ShouldAllowResult,
};
use crate::store::Store;

impl<S: Store> RateLimit<S> {
    /// All questions are put to the store before any answer is awaited, in order and from one task: the
    /// memory store has decided them all by then, and Redis is sent what is for one node together.
    pub(super) async fn decide_batch(
        &self,
        batch: &ShouldAllowBatchRequest,
        deadline: Option<Instant>,
    ) -> Result<ShouldAllowBatchResponse, Status> {
        check_batch(batch.requests.len()).map_err(|invalid| status::of(LimiterError::Invalid(invalid)))?;
        let results = join_all(batch.requests.iter().map(|request| self.decide(request, deadline))).await;
        Ok(ShouldAllowBatchResponse { results: results.into_iter().map(result).collect() })
    }
}

fn result(decided: Result<ShouldAllowResponse, Status>) -> ShouldAllowResult {
    let ended = match decided {
        Ok(response) => Ended::Response(response),
        Err(status) => {
            Ended::Error(Error { code: status.code().into(), message: status.message().to_owned() })
        }
    };
    ShouldAllowResult { result: Some(ended) }
}
