//! Pages without a configuration: the metrics of the client that waits for it, and the reason for the wait.

use std::io;
use std::net::TcpListener;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::routing::get;
use prometheus::{Registry, TextEncoder};
use weir_config::ServerConfig;
use weir_node::admin::{AdminConnections, AdminGate};
use weir_node::owned_thread::OwnedThread;

use super::{Port, serve_on_thread};
use crate::metrics::XdsMetrics;

/// Serves metrics at `path`, and the reason for waiting at `/`. The page ends when the thread is dropped; the port stays open.
pub(crate) fn serve_waiting(
    listener: TcpListener,
    path: &str,
    server: &ServerConfig,
    registry: Registry,
    xds: XdsMetrics,
) -> io::Result<OwnedThread> {
    let mut router = Router::new().route(path, get(metrics).with_state(registry));
    if path != "/" {
        router = router.route("/", get(reason).with_state(xds));
    }
    // Nobody can be named yet, and nothing of callers is shown.
    let connections = AdminConnections::new(server.limits.admin_max_connections, None, AdminGate::open());
    let port = Port { listener, router, connections };
    serve_on_thread("weir-waiting", move || Ok(vec![port]))
}

async fn metrics(Shared(registry): Shared<Registry>) -> Result<String, StatusCode> {
    let text = TextEncoder::new().encode_to_string(&registry.gather());
    text.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn reason(Shared(xds): Shared<XdsMetrics>) -> String {
    format!("waiting for the first configuration: {}\n", xds.state())
}
