//! Dispatch of calls on `fast`. Hot methods go directly to their services; everything else takes tonic's router.
//!
//! The router is made for many services: it matches patterns and boxes futures and bodies, which costs a tenth of a
//! decision's CPU. Nearly all calls are decisions.

use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use weir_config::MAX_BATCH_BYTES;
use weir_grpc::{
    BegunCall, Call, CallContext, HotMethod, HotService, IncomingCall, MethodId, Methods, PendingCall, Reply,
    RequestBody, SideStream, Unanswered, turn,
};
use weir_store::Store;

use super::PortServices;
use super::services::Services;
use super::until_deadline::until_deadline;
use crate::current_method::serve_method;
use crate::feature::{HotRoute, ServiceSpec};
use crate::service::MAX_MESSAGE_BYTES;

const SHOULD_ALLOW: MethodId = MethodId(0);
const SHOULD_ALLOW_BATCH: MethodId = MethodId(1);
const SHOULD_ALLOW_STREAM: MethodId = MethodId(2);
/// The number of the first hot method of features.
const OF_FEATURES: u8 = 3;

/// Memory of an open call of each side stream in bytes, measured and rounded up. Reflection is a task with a
/// channel and two buffers of tonic's.
const SIDE_STREAMS: [(&str, usize); 3] = [
    ("/grpc.health.v1.Health/Watch", 4 << 10),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", 24 << 10),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", 24 << 10),
];

/// Returns the hot methods in the order of their numbers above, those of features last. Messages of decisions may have
/// `largest` bytes, and those of `features` what these say. No call finds those that are not `served`: no path is empty.
pub(super) fn methods<'a>(
    largest: usize,
    features: impl Iterator<Item = &'a ServiceSpec> + Clone,
    (hot_of_features, served): (&[HotRoute], PortServices),
) -> Methods {
    let hot = [
        ("/weir.v1.RateLimitService/ShouldAllow", largest),
        ("/weir.v1.RateLimitService/ShouldAllowBatch", MAX_BATCH_BYTES),
        ("/weir.v1.RateLimitService/ShouldAllowStream", largest),
    ];
    let hot = hot.map(|(path, largest_message)| HotMethod {
        path: if served.calls() { path } else { "" },
        largest_message,
        together: path.ends_with("/ShouldAllow"),
        streaming: path.ends_with("Stream"),
    });
    let of_features = hot_of_features.iter().map(|&HotRoute { path, largest_message, .. }| HotMethod {
        path,
        largest_message,
        together: false,
        streaming: false,
    });
    let hot: Vec<HotMethod> = hot.into_iter().chain(of_features).collect();
    // Services of other methods have smaller bounds of their own.
    let streams = SIDE_STREAMS.iter().chain(features.clone().flat_map(|service| service.streams));
    let side_streams: Vec<_> = streams.map(|&(path, bytes)| SideStream { path, bytes }).collect();
    let largest_other = features.map(|service| service.largest_message).fold(largest, usize::max);
    Methods::new(hot, largest_other.max(MAX_MESSAGE_BYTES)).with_side_streams(side_streams)
}

impl<S: Store> HotService for Services<S> {
    fn methods(&self) -> &Methods {
        &self.methods
    }

    fn begin(&self, method: MethodId, call: IncomingCall, closing: &watch::Receiver<()>) -> BegunCall {
        BegunCall::Call(match method {
            SHOULD_ALLOW => return self.decisions.should_allow(call),
            SHOULD_ALLOW_BATCH => return self.decisions.should_allow_batch(call),
            SHOULD_ALLOW_STREAM => self.decisions.should_allow_stream(call, closing.clone()),
            MethodId(other) => match self.hot.get(usize::from(other.wrapping_sub(OF_FEATURES))) {
                Some(hot) => (hot.begin)(call),
                None => Call::failed(Status::unimplemented("there is no such method")),
            },
        })
    }

    fn answer_each(
        &self,
        pending: &[PendingCall],
        each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered {
        self.decisions.answer_each(pending, each)
    }

    fn other(&self, context: CallContext, mut request: http::Request<RequestBody>) -> Call {
        let (deadlines, deadline) = (self.decisions.deadlines().clone(), context.deadline);
        request.extensions_mut().insert(context);
        turn::spend(1);
        let name = self.router.name_of(request.uri().path());
        let response = serve_method(name, self.router.call(request.map(Body::new)));
        Call::waiting(self.decisions.deadlines(), None, async move {
            Ok(Reply::Other(Box::new(until_deadline(response, &deadlines, deadline).await)))
        })
    }
}
