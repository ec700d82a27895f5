//! Which service a call goes to. Decisions go there directly; everything else takes tonic's router.
//!
//! The router is for many services: it matches patterns and boxes what it passes on, which is worth a
//! tenth of a decision's CPU. All calls but a few are decisions.

use std::sync::Arc;

use h2::RecvStream;
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service as _, http};
use tonic::service::Routes;

use super::received::Received;
use crate::deadlines::Deadlines;
use crate::proto::v1::rate_limit_service_server::SERVICE_NAME;
use crate::service::{Begun, Call, EnvoyRateLimit, Posed, RateLimit, Reply, Whole};
use crate::store::Store;

/// The one method of Envoy's service.
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// All services of one worker.
pub(super) struct Dispatch<S> {
    decisions: Arc<RateLimit<S>>,
    envoy: Arc<EnvoyRateLimit<S>>,
    others: Routes,
    deadlines: Deadlines,
}

impl<S: Store> Dispatch<S> {
    pub(super) fn new(decisions: Arc<RateLimit<S>>, envoy: Arc<EnvoyRateLimit<S>>, others: Routes) -> Self {
        Self { decisions, envoy, others: others.prepare(), deadlines: Deadlines::default() }
    }

    /// Whether a call asks one question.
    pub(super) fn is_question(request: &http::Request<RecvStream>) -> bool {
        method(request.uri().path()) == Some("/ShouldAllow")
    }

    /// Begins a call that asks one question.
    pub(super) fn ask(&self, request: http::Request<RecvStream>) -> Begun {
        self.decisions.should_allow(request, Received::new)
    }

    /// Answers questions that have begun.
    pub(super) fn answer_each(&self, posed: &[Posed], each: impl FnMut(usize, Result<Whole, Status>)) {
        self.decisions.answer_each(posed, each);
    }

    /// One call of any other kind. `leaving` tells when its connection is to end.
    pub(super) fn call(&self, request: http::Request<RecvStream>, leaving: &watch::Receiver<()>) -> Call {
        let request = request.map(Received::new);
        let path = request.uri().path();
        match method(path) {
            Some("/ShouldAllowBatch") => self.decisions.should_allow_batch(request),
            Some("/ShouldAllowStream") => self.decisions.should_allow_stream(request, leaving.clone()),
            Some("/Refund") => self.decisions.refund(request),
            Some(method) if method.starts_with('/') => Call::failed(unknown(method)),
            None if path == SHOULD_RATE_LIMIT => self.envoy.should_rate_limit(request),
            _ => self.call_other(request),
        }
    }

    fn call_other(&self, request: http::Request<Received>) -> Call {
        let mut others = self.others.clone();
        Call::until_deadline(&self.deadlines, request, |request| async move {
            match others.call(request.map(Body::new)).await {
                Ok(response) => Ok(response.map(Reply::other)),
                Err(never) => match never {},
            }
        })
    }
}

/// What follows the name of our service in a path, if that begins with it.
fn method(path: &str) -> Option<&str> {
    path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME))
}

fn unknown(method: &str) -> Status {
    let method = method.trim_start_matches('/').escape_debug().take(64).collect::<String>();
    Status::unimplemented(format!("{SERVICE_NAME} has no method `{method}`"))
}
