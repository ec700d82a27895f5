//! `/ui/control`: what live control has changed, and who is banned.

use axum::Router;
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::{Value, json};
use weir_proto::v1::{ConsumerBan, ControlEntry};

use crate::control::{BannedUntil, ControlHandle};
use crate::proto_json;

/// Bans that are shown.
const BANS: usize = 100;

/// Entries that are shown.
const ENTRIES: usize = 1_000;

pub(super) fn routes(control: ControlHandle) -> Router {
    Router::new().route(super::UI_CONTROL, get(data).with_state(control))
}

async fn data(Shared(control): Shared<ControlHandle>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], collected(&control).to_string())
}

fn collected(control: &ControlHandle) -> Value {
    let (view, bans) = (control.view(), control.bans(""));
    let entry =
        |(key, entry): (&str, &ControlEntry)| message("weir.v1.ControlEntry", &control.shown(key, entry));
    let ban = |(_, ban): (&str, BannedUntil)| message("weir.v1.ConsumerBan", &ConsumerBan::from(ban));
    json!({
        "entries": view.living().take(ENTRIES).map(entry).collect::<Vec<_>>(),
        "total": view.living().count(),
        "bans": bans.iter().take(BANS).map(ban).collect::<Vec<_>>(),
        "total_bans": bans.total(),
        "incomplete": view.incomplete,
    })
}

fn message(name: &str, message: &impl prost::Message) -> Value {
    let line = proto_json::line(name, message);
    line.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or(Value::Null)
}
