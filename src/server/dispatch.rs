//! Which service a call goes to. Decisions go there directly; everything else takes tonic's router.
//!
//! The router is for many services: it matches patterns and boxes what it passes on, which is worth a
//! tenth of a decision's CPU. All calls but a few are decisions.

use std::sync::Arc;

use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service as _, http};
use tonic::service::Routes;

use super::http2::Received;
use crate::deadlines::Deadlines;
use crate::proto::v1::rate_limit_service_server::SERVICE_NAME;
use crate::service::{Begun, Call, EnvoyRateLimit, Posed, RateLimit, Reply, Unanswered};
use crate::store::Store;

/// What decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    ShouldAllow,
    ShouldAllowBatch,
    ShouldAllowStream,
    Refund,
    ShouldRateLimit,
}

/// All services of one worker.
pub(super) struct Dispatch<S> {
    decisions: Arc<RateLimit<S>>,
    envoy: Arc<EnvoyRateLimit<S>>,
    others: Routes,
    deadlines: Deadlines,
}

impl Method {
    /// The method at this path.
    pub(super) fn of(path: &[u8]) -> Option<Self> {
        Some(match path {
            b"/weir.v1.RateLimitService/ShouldAllow" => Self::ShouldAllow,
            b"/weir.v1.RateLimitService/ShouldAllowBatch" => Self::ShouldAllowBatch,
            b"/weir.v1.RateLimitService/ShouldAllowStream" => Self::ShouldAllowStream,
            b"/weir.v1.RateLimitService/Refund" => Self::Refund,
            b"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" => Self::ShouldRateLimit,
            _ => return None,
        })
    }
}

impl<S: Store> Dispatch<S> {
    pub(super) fn new(decisions: Arc<RateLimit<S>>, envoy: Arc<EnvoyRateLimit<S>>, others: Routes) -> Self {
        let deadlines = decisions.deadlines().clone();
        Self { decisions, envoy, others: others.prepare(), deadlines }
    }

    /// Begins a call. `leaving` tells when its connection is to end.
    pub(super) fn call(
        &self,
        method: Option<Method>,
        request: http::Request<Received>,
        leaving: &watch::Receiver<()>,
    ) -> Begun {
        Begun::Call(match method {
            Some(Method::ShouldAllow) => return self.decisions.should_allow(request),
            Some(Method::ShouldAllowBatch) => self.decisions.should_allow_batch(request),
            Some(Method::ShouldAllowStream) => self.decisions.should_allow_stream(request, leaving.clone()),
            Some(Method::Refund) => self.decisions.refund(request),
            Some(Method::ShouldRateLimit) => self.envoy.should_rate_limit(request),
            None => self.call_other(request),
        })
    }

    /// Answers questions that have begun, as far as that need not be waited for.
    pub(super) fn answer_each(
        &self,
        posed: &[Posed],
        each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered {
        self.decisions.answer_each(posed, each)
    }

    /// Goes on with a question that has no answer yet.
    pub(super) fn wait(&self, posed: &mut Posed) -> Call {
        self.decisions.wait(posed)
    }

    fn call_other(&self, request: http::Request<Received>) -> Call {
        let ours = request.uri().path().strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME));
        if let Some(method) = ours.filter(|method| method.starts_with('/')) {
            return Call::failed(unknown(method));
        }
        let mut others = self.others.clone();
        Call::until_deadline(&self.deadlines, request, |request| async move {
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
