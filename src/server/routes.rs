//! The services of one worker, and the bounds of HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder;

use super::ServerError;
use super::dispatch::Dispatch;
use super::health::Health;
use crate::limiter::Limiter;
use crate::proto;
use crate::readiness::Readiness;
use crate::service::{RateLimit, Templates};
use crate::store::Store;

/// Calls in flight on one connection. With the largest message this bounds what a connection can make
/// us hold to 64 MiB; callers that want more open another connection. Batches have a bound of their own.
const MAX_STREAMS: u32 = 1024;
/// Streams that a client has cancelled before we looked at them. Cancelling all its calls at once is
/// what a client with deadlines does when we stall, so one connection's worth is no attack yet.
const MAX_PENDING_RESETS: usize = MAX_STREAMS as usize;
/// Streams that we have reset because of the client's own faults; then the connection ends.
const MAX_OWN_RESETS: usize = 1024;
/// Our callers send a few hundred bytes of headers; room for tokens and trace contexts of proxies.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Peers that vanished without a word are found out within half a minute.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(20);
const KEEPALIVE_PATIENCE: Duration = Duration::from_secs(10);
/// Health and reflection take names, no more.
const MAX_SIDE_MESSAGE_BYTES: usize = 4 << 10;

/// HTTP/2 within its bounds.
pub(super) fn http2() -> Server {
    Server::builder()
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_pending_accept_reset_streams(Some(MAX_PENDING_RESETS))
        .http2_max_local_error_reset_streams(Some(MAX_OWN_RESETS))
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_PATIENCE))
}

/// Decisions, health and, if wanted, reflection.
pub(super) fn services<S: Store>(
    limiter: Limiter<S>,
    templates: &Arc<Templates>,
    readiness: &Readiness,
    reflection: bool,
) -> Result<Dispatch<S>, ServerError> {
    let health = HealthServer::new(Health::new(readiness.clone()));
    let mut others = Routes::new(health.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES));
    if reflection {
        others = with_reflection(others)?;
    }
    Ok(Dispatch::new(&RateLimit::new(limiter, Arc::clone(templates)), others))
}

/// Reflection in both versions: older tools know only `v1alpha`.
fn with_reflection(routes: Routes) -> Result<Routes, ServerError> {
    let failed = |error: tonic_reflection::server::Error| ServerError::Grpc(error.to_string());
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let v1 = builder().build_v1().map_err(failed)?;
    let v1alpha = builder().build_v1alpha().map_err(failed)?;
    Ok(routes
        .add_service(v1.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES))
        .add_service(v1alpha.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES)))
}
