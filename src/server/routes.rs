//! The services of one worker, and the bounds of HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::pb::health_server::{self, HealthServer};
use tonic_reflection::server::Builder;

use super::ServerError;
use super::dispatch::Dispatch;
use super::health::Health;
use crate::config::ServerConfig;
use crate::limiter::Limiter;
use crate::proto;
use crate::proto::v1::{admin_service_server, rate_limit_service_server};
use crate::readiness::Readiness;
use crate::service::{Admin, RateLimit, Templates};
use crate::store::Store;

/// Health and reflection take names, no more.
const MAX_SIDE_MESSAGE_BYTES: usize = 4 << 10;

/// HTTP/2 within its bounds, for connections that may become as old as `age`; then they are told to go
/// elsewhere with what is new. tonic's `max_connection_age_grace` is no bound on what is in flight: with
/// it tonic says nothing at all, and cuts the connection off when both times have passed.
pub(super) fn http2(config: &ServerConfig, age: Option<Duration>) -> Server {
    let limits = &config.limits;
    let server = Server::builder()
        .max_concurrent_streams(limits.max_streams)
        .http2_max_pending_accept_reset_streams(Some(limits.max_pending_resets))
        .http2_max_local_error_reset_streams(Some(limits.max_local_resets))
        .http2_max_header_list_size(limits.max_header_bytes)
        .http2_keepalive_interval(Some(limits.keepalive_interval.into()))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout.into()));
    match age {
        None => server,
        Some(age) => server.max_connection_age(age),
    }
}

/// Decisions, health and what else is offered.
pub(super) fn services<S: Store>(
    limiter: Limiter<S>,
    templates: &Arc<Templates>,
    readiness: &Readiness,
    config: &ServerConfig,
) -> Result<Dispatch<S>, ServerError> {
    let health = HealthServer::new(Health::new(readiness.clone()));
    let mut others = Routes::new(health.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES));
    let decisions = RateLimit::new(limiter, Arc::clone(templates));
    if config.admin_service {
        others = others.add_service(Admin::server(&decisions));
    }
    if config.reflection {
        others = with_reflection(others, config.admin_service)?;
    }
    Ok(Dispatch::new(&decisions, others, config.limits.max_message_bytes))
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
