//! `/json`: a request of Envoy's protocol in proto3 JSON, answered as over gRPC.

use std::io;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use weir_node::admin::AdminCaller;
use weir_node::feature::StartWorker;

use crate::service::{EnvoyJson, EnvoyParts, JsonAnswer, JsonError, MAX_RATE_LIMIT_BYTES};

/// The dependencies of the service behind the page, which is one more worker.
pub(crate) struct JsonParts {
    pub(crate) start_worker: StartWorker,
    pub(crate) envoy: EnvoyParts,
}

impl JsonParts {
    /// The service. Connections of its store belong to the runtime that this is called in.
    pub(super) fn service(self) -> io::Result<Arc<EnvoyJson>> {
        let mut service = None;
        (self.start_worker)(&mut |worker, snapshot| {
            let (envoy, follow) = self.envoy.worker(worker, snapshot);
            service = Some(Arc::new(EnvoyJson::new(&envoy)));
            follow
        });
        service.ok_or_else(|| io::Error::other("the worker of /json has not started"))
    }
}

/// Answers one request: 200, or 429 if it is over a limit.
pub(super) async fn json(Shared(service): Shared<Arc<EnvoyJson>>, mut request: Request) -> Response {
    let caller = request.extensions_mut().remove::<AdminCaller>();
    let caller = caller.and_then(AdminCaller::into_caller);
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
