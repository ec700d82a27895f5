//! `/json`: a request of Envoy's protocol in proto3 JSON, answered as over gRPC.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use weir_grpc::Caller;
use weir_store::Store;

use crate::admin::AdminCaller;
use crate::limiter::envoy::EnvoyLimiter;
use crate::server::{EnvoyParts, LiveSnapshot, MakeStores, worker_decisions};
use crate::service::{EnvoyJson, EnvoyRateLimit, JsonAnswer, JsonError, MAX_RATE_LIMIT_BYTES};
use crate::telemetry::{Metrics, WorkerRecorder};

/// The dependencies of the service behind the page, which is one more worker.
pub(crate) struct JsonParts<S> {
    pub(crate) live: Arc<LiveSnapshot>,
    pub(crate) store: Arc<MakeStores<S>>,
    pub(crate) metrics: Metrics,
    pub(crate) envoy: EnvoyParts,
    /// Its number among the workers.
    pub(crate) worker: usize,
}

impl<S: Store> JsonParts<S> {
    /// The service. Connections of its store belong to the runtime that this is called in.
    pub(super) fn service(self) -> Arc<EnvoyJson<S>> {
        let recorder = Arc::new(WorkerRecorder::new(&self.metrics));
        let store = (self.store)().decisions;
        let decisions = worker_decisions(store, &self.live, recorder, (MAX_RATE_LIMIT_BYTES, None));
        let EnvoyParts { rules, answers, metrics } = self.envoy;
        let envoy = EnvoyLimiter::new(rules, metrics.recorder(self.worker));
        Arc::new(EnvoyJson::new(&EnvoyRateLimit::new(&decisions, envoy, answers)))
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
