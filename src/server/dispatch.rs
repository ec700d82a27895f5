//! Which service a call goes to. Decisions go there directly; everything else takes tonic's router.
//!
//! The router is for many services: it matches patterns and boxes what it passes on, which is worth a
//! tenth of a decision's CPU. All calls but a few are decisions.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::service::Routes;

use crate::proto::v1::rate_limit_service_server::{RateLimitServiceServer, SERVICE_NAME};
use crate::service::RateLimit;
use crate::store::Store;

/// All services of one worker.
pub(super) struct Dispatch<S> {
    decisions: RateLimitServiceServer<RateLimit<S>>,
    others: Routes,
}

impl<S: Store> Dispatch<S> {
    pub(super) fn new(decisions: RateLimitServiceServer<RateLimit<S>>, others: Routes) -> Self {
        Self { decisions, others: others.prepare() }
    }
}

impl<S> Clone for Dispatch<S> {
    fn clone(&self) -> Self {
        Self { decisions: self.decisions.clone(), others: self.others.clone() }
    }
}

impl<S: Store> Service<http::Request<Body>> for Dispatch<S> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    /// Always: neither side has anything to wait for.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = request.uri().path().strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME));
        if service.is_some_and(|method| method.starts_with('/')) {
            self.decisions.call(request)
        } else {
            Box::pin(self.others.call(request))
        }
    }
}
