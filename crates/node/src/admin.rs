//! The admin port: metrics, liveness, readiness and `/ui` over HTTP. It has a thread of its own, so that no scrape
//! delays a decision.

mod connections;
mod gate;
mod progress;
mod ui;

use std::convert::Infallible;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use flate2::Compression;
use flate2::write::GzEncoder;

pub use self::connections::AdminConnections;
pub use self::gate::{AdminCaller, AdminGate};
use crate::access::Rights;
use crate::feature_pages::{FeaturePages, ShowJson};
use crate::owned_thread::OwnedThread;
use crate::readiness::Readiness;
use crate::telemetry::Metrics;
use crate::tls::TlsPort;

const INDEX: &str = "\
weir: exact rate-limit decisions

/ui       what was decided in the last hour, for people
/metrics  Prometheus metrics
/livez    200 while the process runs
/readyz   200 while calls are answered (`degraded:`, while Redis nodes cannot decide: which, why, what to do), else
          503 and the reason
";

/// Content type of Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Sources of the pages of the admin port. Clones share them.
#[derive(Clone)]
pub struct AdminPages {
    /// The metrics.
    pub metrics: Metrics,
    /// The readiness.
    pub readiness: Readiness,
    /// Pages of features.
    pub features: FeaturePages,
}

/// Starts the admin thread, which serves at most `max_connections` connections at a time. `gate` says who may see what.
pub fn start_admin(
    listener: TcpListener,
    tls: Option<Arc<TlsPort>>,
    max_connections: usize,
    pages: AdminPages,
    gate: Arc<AdminGate>,
) -> std::io::Result<OwnedThread> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    OwnedThread::spawn("weir-admin", move |stopped| {
        runtime.block_on(async {
            tokio::select! {
                Err(error) = serve(listener, tls, max_connections, pages, gate) => {
                    tracing::error!(%error, "the admin server failed");
                }
                _ = stopped => {}
            }
        });
    })
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<TlsPort>>,
    max_connections: usize,
    pages: AdminPages,
    gate: Arc<AdminGate>,
) -> std::io::Result<Infallible> {
    let of_features = pages.features.paths.clone();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut router = Router::new()
        .route("/", get(INDEX))
        .route("/livez", get("ok\n"))
        .route("/readyz", get(readyz).with_state(pages.readiness.clone()))
        .route("/metrics", get(scrape).with_state(pages.metrics.clone()))
        .merge(ui::routes(pages));
    for (path, show) in of_features {
        router = router.route(path, get(shown).with_state(show));
    }
    Ok(AdminConnections::new(max_connections, tls, gate).serve(listener, router).await)
}

async fn shown(
    Shared(show): Shared<ShowJson>,
    Extension(AdminCaller(caller)): Extension<AdminCaller>,
) -> impl IntoResponse {
    let rights = caller.as_deref().map_or(Rights::ALL, |caller| Rights::known(caller.rights()));
    ([(header::CONTENT_TYPE, "application/json")], show(rights).to_string())
}

async fn readyz(Shared(readiness): Shared<Readiness>) -> (StatusCode, String) {
    let (is_ready, text) = readiness.page();
    (if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text)
}

/// The metrics page.
pub async fn scrape(Shared(metrics): Shared<Metrics>, headers: HeaderMap) -> axum::response::Response {
    let kind = (header::CONTENT_TYPE, METRICS_TYPE);
    let varies = (header::VARY, "accept-encoding");
    // Encoding takes a millisecond or more. Clients that scrape without a pause wait for all others.
    tokio::task::yield_now().await;
    match metrics.encode() {
        Ok(text) => match Some(&text).filter(|_| takes_gzip(&headers)).and_then(|text| gzip(text).ok()) {
            Some(packed) => ([kind, varies, (header::CONTENT_ENCODING, "gzip")], packed).into_response(),
            None => ([kind, varies], text).into_response(),
        },
        Err(error) => {
            tracing::error!(%error, "cannot render metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// True if the client accepts gzip: `gzip` or `*` among its encodings, and not with a weight of 0.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings = values.flat_map(|value| value.split(',')).map(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = parts.any(|part| {
            part.strip_prefix("q=")
                .and_then(|weight| weight.parse::<f32>().ok())
                .is_some_and(|weight| weight <= 0.0)
        });
        (name, !refused)
    });
    let codings: Vec<(&str, bool)> = codings.collect();
    let named = |name: &str| codings.iter().find(|(coding, _)| coding.eq_ignore_ascii_case(name));
    named("gzip").or_else(|| named("*")).is_some_and(|(_, taken)| *taken)
}

fn gzip(text: &str) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes())?;
    packed.finish()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_for_clients_that_accept_it() {
        let takes = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            takes_gzip(&headers)
        };
        for values in
            [&["gzip"][..], &["deflate, GZIP;q=0.5"], &["br", "gzip"], &["*"], &["br;q=1.0, *;q=0.1"]]
        {
            assert!(takes(values), "{values:?}");
        }
        for values in
            [&[][..], &["identity"], &["gzip;q=0"], &["gzip; q=0.000, *"], &["*;q=0"], &["x-gzipped"]]
        {
            assert!(!takes(values), "{values:?}");
        }
    }
}
