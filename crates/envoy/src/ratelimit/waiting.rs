//! Pages without a configuration: the metrics of the client that waits for it, and the reason for the wait.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::routing::get;
use prometheus::{Registry, TextEncoder};
use weir_config::ServerConfig;
use weir_node::admin::{AdminConnections, AdminGate};

use super::{HttpThread, Port};
use crate::metrics::XdsMetrics;

/// The page of a service that waits. It ends when this is dropped; the port stays open.
pub(crate) struct WaitingPage {
    _thread: HttpThread,
}

impl WaitingPage {
    /// Serves metrics at `path`, and the reason for waiting at `/`.
    pub(crate) fn start(
        listener: TcpListener,
        path: &str,
        server: &ServerConfig,
        registry: Registry,
        xds: XdsMetrics,
    ) -> io::Result<Self> {
        let mut router = Router::new().route(path, get(metrics).with_state(registry));
        if path != "/" {
            router = router.route("/", get(reason).with_state(xds));
        }
        // Nobody can be named yet, and nothing of callers is shown.
        let gate = AdminGate::open();
        let connections = AdminConnections::new(server.limits.admin_max_connections, None, Arc::clone(&gate));
        let port = Port { listener, router, connections };
        Ok(Self { _thread: HttpThread::start("weir-waiting", move || Ok(vec![port]))? })
    }
}

async fn metrics(Shared(registry): Shared<Registry>) -> Result<String, StatusCode> {
    let text = TextEncoder::new().encode_to_string(&registry.gather());
    text.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn reason(Shared(xds): Shared<XdsMetrics>) -> String {
    format!("waiting for the first configuration: {}\n", xds.state())
}
