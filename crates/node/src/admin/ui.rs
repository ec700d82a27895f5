//! The `/ui` page: what this node holds, the health of its store, and what features add. It loads nothing from other hosts.

mod data;
mod node;

use axum::extract::State as Shared;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;

use super::AdminPages;
use super::gate::AdminCaller;
use crate::access::Rights;

const PAGE: &str = include_str!("ui.html");
const SCRIPT: &str = include_str!("ui.js");

/// Mark for the sections of modules in the page.
const MODULES: &str = "<!--modules-->\n";

/// The end of the script, after the modules.
const BEGIN: &str = "load();\n";

const STYLE: &str = include_str!("ui.css");

/// Content security policy: no inline scripts or styles, and the page connects only to this node.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes(pages: AdminPages) -> Router {
    let modules = &pages.features.modules;
    let sections: String = modules.iter().map(|module| module.sections).collect();
    let html = Bytes::from(PAGE.replace(MODULES, &sections));
    let scripts = modules.iter().map(|module| module.script);
    let script = Bytes::from([SCRIPT].into_iter().chain(scripts).chain([BEGIN]).collect::<String>());
    Router::new()
        .route("/ui", get(page).with_state(html.clone()))
        .route("/ui/", get(page).with_state(html))
        .route(
            "/ui/page.js",
            get(|| async { ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], script) }),
        )
        .route("/ui/page.css", get(|| async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }))
        .route("/ui/data", get(data).with_state(pages))
}

async fn page(Shared(html): Shared<Bytes>) -> impl IntoResponse {
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, html)
}

async fn data(
    Shared(pages): Shared<AdminPages>,
    Extension(AdminCaller(caller)): Extension<AdminCaller>,
) -> Response {
    let rights = caller.as_deref().map_or(Rights::ALL, |caller| Rights::known(caller.rights()));
    match data::collected(&pages, rights).await {
        Ok(data) => ([(header::CONTENT_TYPE, "application/json")], data.to_string()).into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
    }
}
