//! `weir.v1.RateLimitService` as a generated trait, which any server of tonic serves.

use std::sync::Arc;

use tonic::{Request, Response, Status, Streaming};
use weir_config::MAX_BATCH_BYTES;
use weir_grpc::{BegunCall, Reply};
use weir_proto::Encoded;
use weir_proto::v1::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use weir_proto::v1::{
    CancelReservationRequest, CancelReservationResponse, CountRequest, CountResponse, DebitRequest,
    DebitResponse, RefundRequest, RefundResponse, ReserveRequest, ReserveResponse, SettleRequest,
    SettleResponse, ShouldAllowBatchRequest, ShouldAllowBatchResponse, ShouldAllowRequest,
    ShouldAllowResponse, ShouldAllowStreamRequest, ShouldAllowStreamResponse,
};
use weir_store::Store;

use super::batch::decisions_of;
use super::incoming::{ReplyStream, context, incoming, incoming_stream, many_messages, one_message};
use super::{BatchTurns, DecisionService};

/// The trait over a [`DecisionService`]. Its hot methods call what `weir_grpc` calls.
pub struct DecisionsApi<S>(Arc<DecisionService<S>>);

impl<S: Store> DecisionsApi<S> {
    /// The service, bounded and ready to be served.
    pub fn server(decisions: &Arc<DecisionService<S>>) -> RateLimitServiceServer<Self> {
        let largest = decisions.largest().max(MAX_BATCH_BYTES);
        RateLimitServiceServer::new(Self(Arc::clone(decisions))).max_decoding_message_size(largest)
    }
}

#[tonic::async_trait]
impl<S: Store> RateLimitService for DecisionsApi<S> {
    async fn should_allow(
        &self,
        request: Request<Encoded<ShouldAllowRequest>>,
    ) -> Result<Response<Encoded<ShouldAllowResponse>>, Status> {
        one_message(self.0.alone(self.0.should_allow(incoming(request, self.0.largest())?)).await?)
    }

    async fn should_allow_batch(
        &self,
        mut request: Request<Encoded<ShouldAllowBatchRequest>>,
    ) -> Result<Response<Encoded<ShouldAllowBatchResponse>>, Status> {
        let turns: BatchTurns = request.extensions_mut().remove().unwrap_or_default();
        let decisions = decisions_of(request.get_ref().as_bytes());
        let call = incoming(request, MAX_BATCH_BYTES)?;
        let begun = turns.take(decisions, || self.0.should_allow_batch(call)).await;
        one_message(self.0.alone(begun).await?)
    }

    type ShouldAllowStreamStream = ReplyStream<ShouldAllowStreamResponse>;

    async fn should_allow_stream(
        &self,
        request: Request<Streaming<Encoded<ShouldAllowStreamRequest>>>,
    ) -> Result<Response<Self::ShouldAllowStreamStream>, Status> {
        let (call, closing) = incoming_stream(request, self.0.largest())?;
        many_messages(self.0.should_allow_stream(call, closing).await?)
    }

    async fn count(&self, mut request: Request<CountRequest>) -> Result<Response<CountResponse>, Status> {
        let context = context(&mut request);
        Ok(Response::new(self.0.current().count(request.get_ref(), &context).await?))
    }

    async fn refund(&self, mut request: Request<RefundRequest>) -> Result<Response<RefundResponse>, Status> {
        let context = context(&mut request);
        Ok(Response::new(self.0.current().refund(request.get_ref(), &context).await?))
    }

    async fn reserve(
        &self,
        mut request: Request<ReserveRequest>,
    ) -> Result<Response<ReserveResponse>, Status> {
        let context = context(&mut request);
        Ok(Response::new(self.0.current().reserve(request.get_ref(), &context).await?))
    }

    async fn cancel_reservation(
        &self,
        mut request: Request<CancelReservationRequest>,
    ) -> Result<Response<CancelReservationResponse>, Status> {
        let context = context(&mut request);
        Ok(Response::new(self.0.current().cancel_reservation(request.get_ref(), &context).await?))
    }

    async fn debit(&self, mut request: Request<DebitRequest>) -> Result<Response<DebitResponse>, Status> {
        let context = context(&mut request);
        Ok(Response::new(self.0.current().debit(request.get_ref(), &context).await?))
    }

    async fn settle(&self, mut request: Request<SettleRequest>) -> Result<Response<SettleResponse>, Status> {
        let context = context(&mut request);
        Ok(Response::new(self.0.current().settle(request.get_ref(), &context).await?))
    }
}

impl<S: Store> DecisionService<S> {
    /// The answer of a call outside a connection of weir_grpc.
    async fn alone(self: &Arc<Self>, begun: BegunCall) -> Result<Reply, Status> {
        match begun {
            BegunCall::Call(call) => call.await,
            BegunCall::Pending(pending) => self.current().answer(pending).await,
        }
    }
}
