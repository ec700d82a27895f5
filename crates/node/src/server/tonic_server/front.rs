//! The layer in front of the services: interceptor, bounds of open calls, decompression, and the caller's deadline.

use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::service::Routes;
use tower_layer::Layer;
use weir_grpc::{
    ConnectionCheck, CurrentPeer, GZIP, Methods, deadline_exceeded, unknown_encoding, with_peer,
};
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

use super::counted::CountedMessages;
use super::inflated::InflatedMessages;
use super::open_calls::CallBounds;
use crate::called::serve_method;
use crate::server::body_layer::{BodyLayer, PolledFrame};
use crate::server::router::{KnownServices, Router};
use crate::server::until_deadline::until_deadline;
use crate::service::{BatchTurns, Closing};

/// Bytes of an unsupported encoding's name that are sent back.
const MAX_ENCODING: usize = 64;

/// The tower layer that puts a [`Front`] before the routes of one connection.
#[derive(Clone)]
pub(super) struct FrontLayer {
    pub(super) methods: Methods,
    pub(super) check: ConnectionCheck,
    /// Where the connection comes from.
    pub(super) from: CurrentPeer,
    pub(super) closing: Closing,
    pub(super) bounds: CallBounds,
    pub(super) deadlines: Deadlines,
    pub(super) turns: BatchTurns,
    /// The services of features.
    pub(super) known: Arc<KnownServices>,
}

/// The services of one connection behind the checks of every call.
#[derive(Clone)]
pub(super) struct Front {
    router: Router,
    methods: Methods,
    check: ConnectionCheck,
    from: CurrentPeer,
    closing: Closing,
    bounds: CallBounds,
    deadlines: Deadlines,
    turns: BatchTurns,
}

impl Layer<Routes> for FrontLayer {
    type Service = Front;

    fn layer(&self, routes: Routes) -> Front {
        let Self { methods, check, from, closing, bounds, deadlines, turns, known } = self.clone();
        Front { router: Router::new(routes, known), methods, check, from, closing, bounds, deadlines, turns }
    }
}

impl Service<http::Request<Body>> for Front {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let context = match self.methods.context_of(&self.check, request.uri().path(), request.headers()) {
            Ok(context) => context,
            Err(status) => return Box::pin(ready(Ok(status.into_http()))),
        };
        let inflated = match is_compressed(request.headers_mut()) {
            Ok(inflated) => inflated,
            Err(status) => return Box::pin(ready(Ok(status.into_http()))),
        };
        let deadline = context.deadline;
        if deadline.is_some_and(|deadline| deadline <= monotonic()) {
            return Box::pin(ready(Ok(deadline_exceeded().into_http())));
        }
        request.extensions_mut().insert(context);
        request.extensions_mut().insert(self.closing.clone());
        request.extensions_mut().insert(self.turns.clone());
        let path = request.uri().path();
        let call = match self.bounds.admit(&self.methods, path) {
            Ok(call) => call,
            Err(status) => return Box::pin(ready(Ok(status.into_http()))),
        };
        let largest = self.methods.largest_message_of(path);
        let counted = CountedMessages::new(largest, inflated, &self.bounds);
        let mut request = request.map(|body| counted.around(body));
        if inflated {
            request = request.map(|body| InflatedMessages(self.bounds.inflater(largest)).around(body));
        }
        let name = self.router.name_of(request.uri().path());
        let response = serve_method(name, self.router.call(request));
        let (deadlines, from) = (self.deadlines.clone(), self.from);
        let mut response = Box::pin(async move {
            let response = until_deadline(response, &deadlines, deadline).await;
            Ok(response.map(|body| FromPeer(from).around(call.around(body))))
        });
        Box::pin(poll_fn(move |context| with_peer(from, || response.as_mut().poll(context))))
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
    match headers.remove("grpc-encoding").as_ref().map(http::HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(false),
        Some(encoding) if encoding == GZIP.as_bytes() => Ok(true),
        Some(encoding) => {
            let known = encoding.get(..MAX_ENCODING).unwrap_or(encoding);
            Err(unknown_encoding(&String::from_utf8_lossy(known)))
        }
    }
}
