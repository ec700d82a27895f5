//! The `/ui` page: the decisions of the last hour, and the health of the node. It loads nothing from other hosts.

use axum::extract::State as Shared;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde_json::{Value, json};
use weir_units::Micros;

use super::gate::AdminCaller;
use crate::access::Rights;
use crate::readiness::Readiness;
use crate::usage::{
    ConsumersAnswer, ConsumersAsk, ConsumersWindow, LatencyPoint, UsageAsk, UsageError, UsageHandle, UsageRow,
};

const PAGE: &str = include_str!("ui.html");
const SCRIPT: &str = include_str!("ui.js");
const STYLE: &str = include_str!("ui.css");

/// Minutes shown.
const MINUTES: u64 = 60;

/// Consumers shown of each kind (denied, allowed), over all strategies.
const CONSUMERS: usize = 100;

/// Content security policy: no inline scripts or styles, and the page connects only to this node.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes of the page and its data.
pub(super) fn routes(usage: UsageHandle, readiness: Readiness) -> Router {
    Router::new()
        .route("/ui", get(page))
        .route(
            "/ui/page.js",
            get(|| async { ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT) }),
        )
        .route("/ui/page.css", get(|| async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }))
        .route("/ui/data", get(data).with_state((usage, readiness)))
}

async fn page() -> impl IntoResponse {
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, PAGE)
}

async fn data(
    Shared((usage, readiness)): Shared<(UsageHandle, Readiness)>,
    Extension(AdminCaller(caller)): Extension<AdminCaller>,
) -> Response {
    let rights = caller.as_deref().map_or(Rights::ALL, |caller| Rights::known(caller.rights()));
    match collected(&usage, &readiness, rights).await {
        Ok(data) => ([(header::CONTENT_TYPE, "application/json")], data.to_string()).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

async fn collected(
    usage: &UsageHandle,
    readiness: &Readiness,
    rights: Rights<'_>,
) -> Result<Value, UsageError> {
    let (now, latency) = usage.latency().await?;
    let from = (now / 60 + 1).saturating_sub(MINUTES) * 60;
    let totals = usage
        .totals(
            rights,
            UsageAsk {
                from: Some(Micros::from_secs(from)),
                to: Some(Micros::from_secs(from + 60 * MINUTES)),
                step: Some(Micros::from_secs(60)),
                ..UsageAsk::default()
            },
        )
        .await?;
    let ask = |allowed| ConsumersAsk {
        strategy: None,
        allowed: Some(allowed),
        window: ConsumersWindow::Hour,
        n: CONSUMERS,
    };
    let (denied, allowed) =
        (usage.consumers(rights, ask(false)).await?, usage.consumers(rights, ask(true)).await?);
    let (ready, health) = readiness.page();
    Ok(json!({
        "now": now,
        "version": env!("CARGO_PKG_VERSION"),
        "from": from,
        "series": totals.rows.iter().map(|row| series(row, from)).collect::<Vec<_>>(),
        "denied": consumers(&denied),
        "allowed": consumers(&allowed),
        "latency": latency.iter().map(point).collect::<Vec<_>>(),
        "ready": ready,
        "health": health,
        "nodes": totals.nodes,
        "incomplete": totals.incomplete,
    }))
}

/// Returns the calls per minute.
fn series(row: &UsageRow, from: u64) -> Value {
    let mut points = vec![0; MINUTES as usize];
    for (at, total) in &row.points {
        let place = usize::try_from(at.saturating_sub(from) / 60).unwrap_or(usize::MAX);
        if let Some(calls) = points.get_mut(place) {
            *calls += total.calls;
        }
    }
    json!({
        "strategy": &*row.strategy,
        "pattern": &*row.pattern,
        "outcome": &*row.outcome,
        "calls": row.total.calls,
        "cost": row.total.cost,
        "points": points,
    })
}

fn consumers(answer: &ConsumersAnswer) -> Vec<Value> {
    let one = answer.consumers.iter().map(|(tally, sampling_error)| {
        json!({
            "consumer": &*tally.key.consumer,
            "strategy": &*tally.key.strategy,
            "calls": tally.count,
            "error": tally.error,
            "sampling_error": sampling_error,
        })
    });
    one.collect()
}

fn point(point: &LatencyPoint) -> Value {
    json!({ "at": point.at, "p50_us": point.p50_us, "p99_us": point.p99_us })
}
