//! What operators and orchestrators ask over HTTP: metrics, liveness, readiness. On a thread of its
//! own, so that no scrape ever delays a decision.

use std::net::TcpListener;
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::sync::oneshot;

use crate::readiness::{Readiness, State};
use crate::telemetry::Metrics;

const INDEX: &str = "\
weir: exact rate-limit decisions

/metrics  Prometheus metrics
/livez    200 while the process runs
/readyz   200 while calls are answered (`degraded:` and why, while the store is away), else 503 and the reason
";

/// The text format that Prometheus defines.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The admin thread. Ends when this is dropped.
pub struct Admin {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Serves on `listener`, and runs `background` beside it for as long.
    pub fn start(
        listener: TcpListener,
        metrics: Metrics,
        readiness: Readiness,
        background: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            runtime.block_on(async {
                tokio::spawn(background);
                tokio::select! {
                    result = serve(listener, metrics, readiness) => {
                        if let Err(error) = result {
                            tracing::error!(%error, "the admin server ended");
                        }
                    }
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("weir-admin".to_owned()).spawn(body)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        // Dropping the sender ends the thread's select.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, metrics: Metrics, readiness: Readiness) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = Router::new()
        .route("/", get(INDEX))
        .route("/livez", get("ok\n"))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(scrape).with_state(metrics));
    axum::serve(listener, router).await
}

async fn readyz(Shared(readiness): Shared<Readiness>) -> (StatusCode, String) {
    match readiness.state() {
        State::Ready => (StatusCode::OK, "ready\n".to_owned()),
        State::Degraded(outage) => (StatusCode::OK, format!("degraded: {outage}\n")),
        State::NotReady(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
        State::Draining | State::Closing => {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready: shutting down\n".to_owned())
        }
    }
}

async fn scrape(Shared(metrics): Shared<Metrics>) -> axum::response::Response {
    match metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be shown");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
