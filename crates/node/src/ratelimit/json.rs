//! `/json`: a request of Envoy's protocol in proto3 JSON, answered as over gRPC.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use weir_core::strategy::Rules;
use weir_grpc::Caller;
use weir_store::Store;

use crate::admin::AdminCaller;
use crate::limiter::Limiter;
use crate::limiter::envoy::EnvoyLimiter;
use crate::server::{EnvoyParts, WorkerStores};
use crate::service::{
    DecisionService, EnvoyJson, EnvoyRateLimit, JsonAnswer, JsonError, MAX_RATE_LIMIT_BYTES, Templates,
};
use crate::telemetry::Metrics;

/// The dependencies of the service behind the page, which is one more worker.
pub(crate) struct JsonParts<S> {
    pub(crate) rules: Arc<Rules>,
    pub(crate) templates: Arc<Templates>,
    pub(crate) store: Box<dyn Fn() -> WorkerStores<S> + Send + Sync>,
    pub(crate) metrics: Metrics,
    pub(crate) envoy: EnvoyParts,
    /// Its number among the workers.
    pub(crate) worker: usize,
}

impl<S: Store> JsonParts<S> {
    /// The service. Connections of its store belong to the runtime that this is called in.
    pub(super) fn service(self) -> Arc<EnvoyJson<S>> {
        let limiter = Limiter::new(self.rules, (self.store)().decisions, self.metrics.recorder());
        let decisions = DecisionService::new(limiter, self.templates, MAX_RATE_LIMIT_BYTES);
        let EnvoyParts { live, rules, answers, metrics } = self.envoy;
        let envoy = EnvoyLimiter::new(rules, metrics.recorder(self.worker));
        Arc::new(EnvoyJson::new(&EnvoyRateLimit::new(&decisions, envoy, answers, live)))
    }
}

/// Answers one request: 200, or 429 if it is over a limit.
pub(super) async fn json<S: Store>(
    Shared(service): Shared<Arc<EnvoyJson<S>>>,
    mut request: Request,
) -> Response {
    let caller = request.extensions_mut().remove::<AdminCaller>();
    let caller = caller.and_then(|AdminCaller(caller)| caller).map(Caller::new);
    let Ok(body) = to_bytes(request.into_body(), MAX_RATE_LIMIT_BYTES).await else {
        let reason = format!("a request has at most {MAX_RATE_LIMIT_BYTES} bytes\n");
        return (StatusCode::PAYLOAD_TOO_LARGE, reason).into_response();
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match service.answer(&body, caller).await {
        Ok(JsonAnswer { is_over: false, text }) => (StatusCode::OK, kind, text).into_response(),
        Ok(JsonAnswer { is_over: true, text }) => (StatusCode::TOO_MANY_REQUESTS, kind, text).into_response(),
        Err(JsonError::Request(reason)) => {
            (StatusCode::BAD_REQUEST, format!("Bad Request: {reason}\n")).into_response()
        }
        Err(JsonError::Unavailable(reason)) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response()
        }
    }
}
