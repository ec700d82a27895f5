//! `Count`: recent use.

use prost::Message as _;
use tonic::Status;
use weir_grpc::CallContext;
use weir_proto::v1::{CountRequest, CountResponse};
use weir_store::Store;

use super::question_of::question_of;
use super::span::duration;
use super::{Decisions, status};
use crate::limiter::{Question, Shaping, interval};

impl<S: Store> Decisions<S> {
    /// Counts what a limit has charged over an interval.
    pub async fn count(
        &self,
        request: &CountRequest,
        context: &CallContext,
    ) -> Result<CountResponse, Status> {
        weir_grpc::check_size(request.encoded_len(), self.largest)?;
        let inline = self.inline_of(request.inline.as_ref(), self.rights.of(context))?;
        let shaping = inline.map(|inline| Box::new(Shaping { inline: Some(inline), ..Shaping::default() }));
        let question = Question { shaping, ..question_of!(request, 0, context, self.rights) };
        let span = request.interval.map(|span| (span.seconds, span.nanos));
        let interval = interval(span).map_err(status::new)?;
        let counted = self.limiter.count(&question, &request.limit, interval).await.map_err(status::new)?;
        Ok(CountResponse { used: counted.used, span: Some(duration(counted.span)) })
    }
}
