//! The services of one worker, and the bounds of HTTP/2.

use std::sync::Arc;

use hyper::server::conn::http2;
use hyper_util::rt::TokioTimer;
use tonic::service::Routes;
use tonic_health::pb::health_server::{self, HealthServer};
use tonic_reflection::server::Builder;

use super::burst::Burst;
use super::dispatch::Dispatch;
use super::health::Health;
use super::{EnvoyParts, Parts, ServerError};
use crate::config::{ServerConfig, ServerLimits};
use crate::limiter::Limiter;
use crate::limiter::envoy::Envoy;
use crate::proto;
use crate::proto::envoy::service::ratelimit::v3::rate_limit_service_server as envoy_service;
use crate::proto::v1::{admin_service_server, rate_limit_service_server};
use crate::service::{Admin, EnvoyRateLimit, RateLimit};
use crate::store::Store;

/// Health and reflection take names, no more.
const MAX_SIDE_MESSAGE_BYTES: usize = 4 << 10;

/// What a caller may send ahead on one stream, and on all of a connection together. Eight streams whose
/// answers nobody reads leave room for the other calls of their connection.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// HTTP/2 within its bounds. No `date` is sent: nothing of gRPC is ever cached.
pub(super) fn http2(limits: &ServerLimits, burst: Burst) -> http2::Builder<Burst> {
    let mut http = http2::Builder::new(burst);
    http.timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .auto_date_header(false)
        .max_concurrent_streams(limits.max_streams)
        .max_pending_accept_reset_streams(limits.max_pending_resets)
        .max_local_error_reset_streams(limits.max_local_resets)
        .max_header_list_size(limits.max_header_bytes)
        .keep_alive_interval(Some(limits.keepalive_interval.into()))
        .keep_alive_timeout(limits.keepalive_timeout.into());
    http
}

/// Decisions, health and what else is offered.
pub(super) fn services<S: Store, F>(
    limiter: Limiter<S>,
    parts: &Parts<F>,
    worker: usize,
    config: &ServerConfig,
) -> Result<Dispatch<S>, ServerError> {
    let health = HealthServer::new(Health::new(parts.readiness.clone()));
    let largest = config.limits.max_message_bytes;
    let decisions = RateLimit::new(limiter, Arc::clone(&parts.templates), largest);
    let EnvoyParts { live, rules, answers, metrics } = parts.envoy.clone();
    let envoy = Envoy::new(rules, metrics.recorder(worker));
    let envoy = EnvoyRateLimit::new(&decisions, envoy, answers, live);
    let mut others = Routes::new(health.max_decoding_message_size(MAX_SIDE_MESSAGE_BYTES));
    if config.admin_service {
        others = others.add_service(Admin::server(&decisions));
    }
    if config.reflection {
        others = with_reflection(others, config.admin_service)?;
    }
    Ok(Dispatch::new(decisions, envoy, others))
}

/// Reflection in both versions: older tools know only `v1alpha`. What is not served is not listed.
fn with_reflection(routes: Routes, admin_service: bool) -> Result<Routes, ServerError> {
    let failed = |error: tonic_reflection::server::Error| ServerError::Grpc(error.to_string());
    let builder = |own_name| {
        let builder = Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .with_service_name(rate_limit_service_server::SERVICE_NAME)
            .with_service_name(envoy_service::SERVICE_NAME)
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
