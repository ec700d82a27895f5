//! The layer in front of the services: interceptor, bounds of open calls, decompression, and the caller's deadline.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use weir_grpc::{
    Call, CallContext, ConnectionCheck, CurrentPeer, GZIP, Methods, PendingCall, deadline_exceeded,
    unknown_encoding, with_peer,
};
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

use super::counted::CountedMessages;
use super::inflated::InflatedMessages;
use super::open_calls::{CallBounds, OpenCall};
use super::whole::{self, message_of};
use crate::current_method::serve_method;
use crate::server::body_layer::{BodyLayer, PolledFrame};
use crate::server::router::Router;
use crate::server::services::AnswerAlone;
use crate::server::until_deadline::until_deadline;
use crate::service::{BatchTurns, Closing};

const GRPC_ENCODING: http::HeaderName = http::HeaderName::from_static("grpc-encoding");

/// Bytes of an unsupported encoding's name that are sent back.
const MAX_ENCODING: usize = 64;

/// Parts that the calls of one connection pass through.
pub(super) struct FrontParts {
    pub(super) router: Router,
    pub(super) decisions: Arc<dyn AnswerAlone>,
    pub(super) methods: Methods,
    pub(super) check: ConnectionCheck,
    /// Peer of the connection.
    pub(super) from: CurrentPeer,
    pub(super) closing: Closing,
    pub(super) bounds: CallBounds,
    pub(super) deadlines: Deadlines,
    pub(super) turns: BatchTurns,
}

/// The services of one connection behind the checks of every call. tonic clones it for each of them.
#[derive(Clone)]
pub(super) struct Front(Arc<FrontParts>);

/// The future of a response. It is boxed only if the response is not ready.
pub(super) enum FrontCall {
    /// A ready response. It is taken once.
    Done(Option<http::Response<Body>>),
    /// A response that is not ready.
    Waiting(CurrentPeer, Pin<Box<dyn Future<Output = http::Response<Body>> + Send>>),
}

impl Front {
    pub(super) fn new(parts: FrontParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Service<http::Request<Body>> for Front {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = FrontCall;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> FrontCall {
        self.0.call(request).unwrap_or_else(|status| FrontCall::Done(Some(status.into_http())))
    }
}

impl FrontParts {
    fn call(&self, mut request: http::Request<Body>) -> Result<FrontCall, Status> {
        let path = request.uri().path();
        let context = self.methods.context_of(&self.check, path, request.headers())?;
        let is_together = self.methods.is_together(self.methods.find(path.as_bytes()));
        let inflated = is_compressed(request.headers_mut())?;
        if context.deadline.is_some_and(|deadline| deadline <= monotonic()) {
            return Err(deadline_exceeded());
        }
        let path = request.uri().path();
        let call = self.bounds.admit(&self.methods, path)?;
        if !is_together || inflated {
            return Ok(self.routed(request, context, inflated, call));
        }
        let largest = self.methods.largest_message_of(path);
        let (head, body) = request.into_parts();
        Ok(match message_of(body, largest) {
            Ok(message) => self.answer(&PendingCall { message, context }, call),
            Err(body) => self.routed(http::Request::from_parts(head, body), context, inflated, call),
        })
    }

    /// Answers a call whose message has arrived.
    fn answer(&self, pending: &PendingCall, call: OpenCall) -> FrontCall {
        match with_peer(self.from, || self.decisions.answer_alone(pending)) {
            Call::Done(Some(answered)) => FrontCall::Done(Some(whole::response(answered, call))),
            waiting => {
                FrontCall::Waiting(self.from, Box::pin(async move { whole::response(waiting.await, call) }))
            }
        }
    }

    /// Lets the router serve a call.
    fn routed(
        &self,
        mut request: http::Request<Body>,
        context: CallContext,
        inflated: bool,
        call: OpenCall,
    ) -> FrontCall {
        let deadline = context.deadline;
        request.extensions_mut().insert(context);
        request.extensions_mut().insert(self.closing.clone());
        request.extensions_mut().insert(self.turns.clone());
        let largest = self.methods.largest_message_of(request.uri().path());
        let counted = CountedMessages::new(largest, inflated, &self.bounds);
        let mut request = request.map(|body| counted.around(body));
        if inflated {
            request = request.map(|body| InflatedMessages(self.bounds.inflater(largest)).around(body));
        }
        let name = self.router.name_of(request.uri().path());
        let response = serve_method(name, self.router.call(request));
        let (deadlines, from) = (self.deadlines.clone(), self.from);
        let response = async move {
            let response = until_deadline(response, &deadlines, deadline).await;
            response.map(|body| FromPeer(from).around(call.around(body)))
        };
        FrontCall::Waiting(from, Box::pin(response))
    }
}

impl Future for FrontCall {
    type Output = Result<http::Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(response) => {
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
            }
            Self::Waiting(from, response) => with_peer(*from, || response.as_mut().poll(context)).map(Ok),
        }
    }
}

/// Polls a body as a part of a call from this address.
struct FromPeer(CurrentPeer);

impl BodyLayer for FromPeer {
    fn poll_frame(&mut self, body: Pin<&mut Body>, context: &mut Context<'_>) -> PolledFrame {
        with_peer(self.0, || http_body::Body::poll_frame(body, context))
    }
}

/// True if a request is compressed with gzip; the status of the call for any other encoding. The header is removed,
/// because the services see inflated messages.
fn is_compressed(headers: &mut http::HeaderMap) -> Result<bool, Status> {
    match headers.remove(&GRPC_ENCODING).as_ref().map(http::HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(false),
        Some(encoding) if encoding == GZIP.as_bytes() => Ok(true),
        Some(encoding) => {
            let known = encoding.get(..MAX_ENCODING).unwrap_or(encoding);
            Err(unknown_encoding(&String::from_utf8_lossy(known)))
        }
    }
}
