//! The `/ui` page: the decisions of the last hour and of the last ten minutes, what is held, and the health of the nodes. It
//! loads nothing from other hosts.

mod control;
mod data;
mod node;

use axum::extract::State as Shared;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

use super::gate::AdminCaller;
use super::pages::AdminPages;
use crate::access::Rights;
use crate::usage::UsageHandle;

const PAGE: &str = include_str!("ui.html");
const SCRIPT: &str = include_str!("ui.js");
const STYLE: &str = include_str!("ui.css");

/// Content security policy: no inline scripts or styles, and the page connects only to this node.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes of the page and its data.
pub(super) fn routes(pages: AdminPages, usage: UsageHandle) -> Router {
    Router::new()
        .route("/ui", get(page))
        .route("/ui/", get(page))
        .route(
            "/ui/page.js",
            get(|| async { ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT) }),
        )
        .route("/ui/page.css", get(|| async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }))
        .route("/ui/data", get(data).with_state((pages, usage)))
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
    Shared((pages, usage)): Shared<(AdminPages, UsageHandle)>,
    Extension(AdminCaller(caller)): Extension<AdminCaller>,
) -> Response {
    let rights = caller.as_deref().map_or(Rights::ALL, |caller| Rights::known(caller.rights()));
    match data::collected(&pages, &usage, rights).await {
        Ok(data) => ([(header::CONTENT_TYPE, "application/json")], data.to_string()).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}
