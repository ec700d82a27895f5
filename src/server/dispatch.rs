//! Which service a call goes to. Hot methods go there directly; everything else takes tonic's router.
//!
//! The router is for many services: it matches patterns and boxes what it passes on, which is worth a
//! tenth of a decision's CPU. All calls but a few are decisions.

use std::sync::Arc;

use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service as _, http};
use tonic::service::Routes;
use weir_grpc::{
    Begun, Call, CallContext, HotMethod, HotService, IncomingCall, MethodId, Methods, PendingCall, Reply,
    RequestBody, Unanswered,
};

use crate::proto::v1::rate_limit_service_server::SERVICE_NAME;
use crate::service::{EnvoyRateLimit, MAX_BATCH_BYTES, MAX_RATE_LIMIT_BYTES, RateLimit};
use crate::store::Store;

const SHOULD_ALLOW: MethodId = MethodId(0);
const SHOULD_ALLOW_BATCH: MethodId = MethodId(1);
const SHOULD_ALLOW_STREAM: MethodId = MethodId(2);
const REFUND: MethodId = MethodId(3);
const SHOULD_RATE_LIMIT: MethodId = MethodId(4);

/// The largest message of any other method; those services have smaller bounds of their own.
const MAX_OTHER_BYTES: usize = 64 << 10;

/// All services of one worker.
pub(super) struct Dispatch<S> {
    decisions: Arc<RateLimit<S>>,
    envoy: Arc<EnvoyRateLimit<S>>,
    others: Routes,
    methods: Methods,
}

impl<S: Store> Dispatch<S> {
    pub(super) fn new(decisions: Arc<RateLimit<S>>, envoy: Arc<EnvoyRateLimit<S>>, others: Routes) -> Self {
        let methods = methods(decisions.largest_message());
        Self { decisions, envoy, others: others.prepare(), methods }
    }
}

/// In the order of their numbers above.
fn methods(largest: usize) -> Methods {
    let hot = [
        ("/weir.v1.RateLimitService/ShouldAllow", largest),
        ("/weir.v1.RateLimitService/ShouldAllowBatch", MAX_BATCH_BYTES),
        ("/weir.v1.RateLimitService/ShouldAllowStream", largest),
        ("/weir.v1.RateLimitService/Refund", largest),
        ("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", MAX_RATE_LIMIT_BYTES),
    ];
    let together = |path: &str| path.ends_with("/ShouldAllow");
    let hot =
        hot.map(|(path, largest_message)| HotMethod { path, largest_message, together: together(path) });
    Methods::new(hot.into(), MAX_OTHER_BYTES)
}

impl<S: Store> HotService for Dispatch<S> {
    fn methods(&self) -> &Methods {
        &self.methods
    }

    fn begin(&self, method: MethodId, call: IncomingCall, closing: &watch::Receiver<()>) -> Begun {
        Begun::Call(match method {
            SHOULD_ALLOW => return self.decisions.should_allow(call),
            SHOULD_ALLOW_BATCH => self.decisions.should_allow_batch(call),
            SHOULD_ALLOW_STREAM => self.decisions.should_allow_stream(call, closing.clone()),
            REFUND => self.decisions.refund(call),
            SHOULD_RATE_LIMIT => self.envoy.should_rate_limit(call),
            MethodId(_) => Call::failed(Status::unimplemented("there is no such method")),
        })
    }

    fn answer_each(
        &self,
        pending: &[PendingCall],
        each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered {
        self.decisions.answer_each(pending, each)
    }

    fn wait(&self, pending: &mut PendingCall) -> Call {
        self.decisions.wait(pending)
    }

    fn other(&self, context: CallContext, request: http::Request<RequestBody>) -> Call {
        let ours = request.uri().path().strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME));
        if let Some(method) = ours.filter(|method| method.starts_with('/')) {
            return Call::failed(unknown(method));
        }
        let mut others = self.others.clone();
        Call::waiting(self.decisions.deadlines(), context.deadline, async move {
            match others.call(request.map(Body::new)).await {
                Ok(response) => Ok(Reply::Other(Box::new(response))),
                Err(never) => match never {},
            }
        })
    }
}

fn unknown(method: &str) -> Status {
    let method = method.trim_start_matches('/').escape_debug().take(64).collect::<String>();
    Status::unimplemented(format!("{SERVICE_NAME} has no method `{method}`"))
}
