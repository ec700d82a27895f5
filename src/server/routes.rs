//! The services of one worker, and the bounds of HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::pb::health_server::{self, HealthServer};
use tonic_reflection::server::Builder;

use super::dispatch::Dispatch;
use super::health::Health;
use super::{Offers, ServerError};
use crate::limiter::Limiter;
use crate::proto;
use crate::proto::v1::{admin_service_server, rate_limit_service_server};
use crate::readiness::Readiness;
use crate::service::{Admin, RateLimit, Templates};
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

/// Decisions, health and what else is offered.
pub(super) fn services<S: Store>(
    limiter: Limiter<S>,
    templates: &Arc<Templates>,
    readiness: &Readiness,
    offers: Offers,
) -> Result<Dispatch<S>, ServerError> {
    let health = HealthServer::new(Health::new(readiness.clone()));
    let mut others = Routes::new(health.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES));
    let decisions = RateLimit::new(limiter, Arc::clone(templates));
    if offers.admin_service {
        others = others.add_service(Admin::server(&decisions));
    }
    if offers.reflection {
        others = with_reflection(others, offers.admin_service)?;
    }
    Ok(Dispatch::new(&decisions, others))
}

/// Reflection in both versions: older tools know only `v1alpha`. What is not served is not listed.
fn with_reflection(routes: Routes, admin_service: bool) -> Result<Routes, ServerError> {
    let failed = |error: tonic_reflection::server::Error| ServerError::Grpc(error.to_string());
    let builder = |own_name| {
        let builder = Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .with_service_name(rate_limit_service_server::SERVICE_NAME)
            .with_service_name(health_server::SERVICE_NAME)
            .with_service_name(own_name);
        if admin_service { builder.with_service_name(admin_service_server::SERVICE_NAME) } else { builder }
    };
    let v1 = builder("grpc.reflection.v1.ServerReflection").build_v1().map_err(failed)?;
    let v1alpha = builder("grpc.reflection.v1alpha.ServerReflection").build_v1alpha().map_err(failed)?;
    Ok(routes
        .add_service(v1.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES))
        .add_service(v1alpha.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES)))
}
