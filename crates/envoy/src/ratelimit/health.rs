//! `/healthcheck`, as probes of the reference ask for it.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use weir_node::readiness::{Readiness, State};

use super::ShownRules;

/// Dependencies of the page.
#[derive(Clone)]
pub(super) struct HealthPage {
    pub(super) readiness: Readiness,
    pub(super) rules: ShownRules,
    pub(super) needs_domain: bool,
}

/// 200 while calls are answered: from the first answer of Redis on, whatever its state, unless the node needs it; 500 from SIGTERM on.
pub(super) async fn healthcheck(Shared(page): Shared<HealthPage>) -> (StatusCode, &'static str) {
    let is_healthy = match page.readiness.state() {
        State::Ready | State::Degraded(_) => true,
        State::NotReady(_) | State::WithoutStore(_) | State::Draining | State::Closing => false,
    };
    let has_domain = || page.rules.current().is_some_and(|loaded| !loaded.domains().is_empty());
    match is_healthy && (!page.needs_domain || has_domain()) {
        true => (StatusCode::OK, "OK"),
        false => (StatusCode::INTERNAL_SERVER_ERROR, ""),
    }
}
