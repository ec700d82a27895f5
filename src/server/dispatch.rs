//! Which service a call goes to. Decisions go there directly; everything else takes tonic's router.
//!
//! The router is for many services: it matches patterns and boxes what it passes on, which is worth a
//! tenth of a decision's CPU. All calls but a few are decisions.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::service::Routes;

use crate::proto::v1::rate_limit_service_server::{RateLimitServiceServer, SERVICE_NAME};
use crate::service::RateLimit;
use crate::store::Store;

/// Batches that one worker reads and decides at a time; more wait unread. With the largest batch this
/// bounds what all connections of a worker can make us hold to 64 MiB.
const MAX_BATCHES: usize = 64;

/// All services of one worker.
pub(super) struct Dispatch<S> {
    decisions: RateLimitServiceServer<RateLimit<S>>,
    batches: RateLimitServiceServer<RateLimit<S>>,
    batch_places: Arc<Semaphore>,
    others: Routes,
}

impl<S: Store> Dispatch<S> {
    pub(super) fn new(service: &Arc<RateLimit<S>>, others: Routes, largest: usize) -> Self {
        let (decisions, batches) = (service.server(largest), service.batch_server());
        Self {
            decisions,
            batches,
            batch_places: Arc::new(Semaphore::new(MAX_BATCHES)),
            others: others.prepare(),
        }
    }

    fn call_batch(&self, request: http::Request<Body>) -> BoxFuture<http::Response<Body>, Infallible> {
        let (mut batches, places) = (self.batches.clone(), Arc::clone(&self.batch_places));
        Box::pin(async move {
            // An error would mean that somebody has closed the semaphore, which nobody does.
            let _place = places.acquire().await;
            batches.call(request).await
        })
    }
}

impl<S> Clone for Dispatch<S> {
    fn clone(&self) -> Self {
        Self {
            decisions: self.decisions.clone(),
            batches: self.batches.clone(),
            batch_places: Arc::clone(&self.batch_places),
            others: self.others.clone(),
        }
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
        let method = request.uri().path().strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME));
        match method {
            Some("/ShouldAllowBatch") => self.call_batch(request),
            Some(method) if method.starts_with('/') => self.decisions.call(request),
            _ => Box::pin(self.others.call(request)),
        }
    }
}
