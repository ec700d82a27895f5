//! A rate limit service that allows everything and keeps the bytes of what it was asked.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use tonic::codegen::{Body, Service, StdError};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::support::grpc::Raw;

/// `overall_code: OK`.
const OK: &[u8] = &[0x08, 0x01];

#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<Bytes>>>);

impl Recorder {
    /// Serves on the current runtime, for as long as that lives.
    pub(crate) fn start() -> (Self, SocketAddr) {
        let recorder = Self::default();
        let incoming = TcpIncoming::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = incoming.local_addr().unwrap();
        let server = Server::builder().add_service(recorder.clone());
        tokio::spawn(server.serve_with_incoming(incoming));
        (recorder, address)
    }

    /// The messages so far, without gRPC's frame.
    pub(crate) fn requests(&self) -> Vec<Bytes> {
        self.0.lock().clone()
    }
}

impl NamedService for Recorder {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl UnaryService<Bytes> for Recorder {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        self.0.lock().push(request.into_inner());
        ready(Ok(Response::new(Bytes::from_static(OK))))
    }
}

impl<B> Service<http::Request<B>> for Recorder
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        assert_eq!(request.uri().path(), "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit");
        let recorder = self.clone();
        Box::pin(async move { Ok(Grpc::new(Raw).unary(recorder, request).await) })
    }
}
