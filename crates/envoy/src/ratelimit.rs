//! The HTTP ports beside gRPC in the place of envoyproxy/ratelimit: `/healthcheck` and `/json` on one port, `/rlconfig`,
//! `/stats` and `/metrics` on another, and metrics on a third.
//!
//! `/json` is one more worker, with a store of its own. It has a thread of its own, so that no scrape delays it.

mod debug;
mod health;
mod json;
mod plan;
mod ports;
mod shown;
mod waiting;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get};
use weir_config::{Config, ServerConfig};
use weir_node::admin::{AdminConnections, AdminGate, scrape};
use weir_node::feature::StartError;
use weir_node::owned_thread::OwnedThread;
use weir_node::readiness::Readiness;
use weir_node::server::listen_tcp;
use weir_node::telemetry::Metrics;

use self::health::{HealthPage, healthcheck};
pub(crate) use self::json::JsonParts;
pub use self::plan::{
    RATELIMIT_DIFFERENCES, REFERENCE_FAMILIES, RatelimitErrors, RatelimitGiven, RatelimitLine, RatelimitLog,
    RatelimitPlan, RatelimitSurroundings, RatelimitVariable, VariableEffect, ratelimit_variables,
};
pub use self::ports::RatelimitPorts;
pub(crate) use self::shown::ShownRules;
pub(crate) use self::waiting::serve_waiting;

/// Most connections of the port of `/healthcheck` and `/json`.
pub(crate) const MAX_CONNECTIONS: usize = 1024;

/// The part of the configuration with the ports. No file has it.
pub const PORTS: &str = "ratelimit";

/// The sockets beside gRPC.
pub struct RatelimitListeners {
    /// `/healthcheck` and `/json`.
    pub http: TcpListener,
    /// `/rlconfig`, `/stats` and `/metrics`.
    pub debug: TcpListener,
    /// Metrics alone.
    pub metrics: Option<TcpListener>,
}

/// The dependencies of the pages.
pub(crate) struct PageParts<'p> {
    pub(crate) ports: &'p RatelimitPorts,
    pub(crate) server: &'p ServerConfig,
    pub(crate) readiness: Readiness,
    pub(crate) metrics: Metrics,
    pub(crate) rules: ShownRules,
}

/// Returns the ports, if the node stands in for envoyproxy/ratelimit.
pub(crate) fn ports_of(config: &Config) -> Option<&RatelimitPorts> {
    config.section(PORTS)
}

/// Returns the error of a port that cannot be served.
pub(crate) fn cannot_start(error: io::Error) -> StartError {
    StartError::Complete(format!("the admin server cannot start: {error}"))
}

impl RatelimitListeners {
    /// Binds all ports. That of the metrics may be open already.
    pub(crate) fn bind(
        config: &Config,
        ports: &RatelimitPorts,
        metrics: Option<TcpListener>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            metrics: metrics.map_or_else(|| Self::bind_metrics(config), |metrics| Ok(Some(metrics)))?,
            http: open("/healthcheck and /json", ports.http)?,
            debug: open("/rlconfig, /stats and /metrics", ports.debug)?,
        })
    }

    /// Binds the address of the metrics alone, if they have one of their own.
    pub(crate) fn bind_metrics(config: &Config) -> Result<Option<TcpListener>, StartError> {
        let metrics = ports_of(config).and_then(|ports| ports.metrics.as_ref());
        metrics.map(|(address, _)| open("metrics", *address)).transpose()
    }
}

fn open(what: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    listen_tcp(address).map_err(|error| StartError::Bind { what, address: address.into(), error })
}

/// Serves all ports until the threads are dropped.
pub(crate) fn serve_pages(
    listeners: RatelimitListeners,
    parts: PageParts<'_>,
    json: JsonParts,
) -> io::Result<[OwnedThread; 2]> {
    let RatelimitListeners { http, debug, metrics } = listeners;
    let few = parts.server.limits.admin_max_connections;
    let PageParts { ports, readiness, metrics: metrics_page, rules, .. } = parts;
    let page = HealthPage { readiness, rules: rules.clone(), needs_domain: ports.needs_domain };
    // The ports of the reference are open to everybody.
    let gate = AdminGate::open();
    let of_others = Arc::clone(&gate);
    let first = serve_on_thread("weir-http", move || {
        // The store's connections belong to the runtime of this thread.
        let router = Router::new()
            .route("/healthcheck", get(healthcheck).with_state(page))
            .route("/json", any(json::json).with_state(json.service()?));
        let connections = AdminConnections::new(MAX_CONNECTIONS, None, gate);
        Ok(vec![Port { listener: http, router, connections }])
    })?;
    let scrapes = |path: &str| Router::new().route(path, get(scrape).with_state(metrics_page.clone()));
    let pages = scrapes("/metrics")
        .route("/", get(debug::INDEX))
        .route("/rlconfig", get(debug::rlconfig).with_state(rules))
        .route("/stats", get(debug::stats).with_state(metrics_page.clone()));
    let open = |listener, router| {
        let connections = AdminConnections::new(few, None, Arc::clone(&of_others));
        Port { listener, router, connections }
    };
    let mut others = vec![open(debug, pages)];
    if let Some((listener, (_, path))) = metrics.zip(ports.metrics.as_ref()) {
        others.push(open(listener, scrapes(path)));
    }
    let second = serve_on_thread("weir-debug", move || Ok(others))?;
    Ok([first, second])
}

/// One port.
struct Port {
    listener: TcpListener,
    router: Router,
    connections: Arc<AdminConnections>,
}

/// Serves the ports that `open` makes within the runtime of a thread.
fn serve_on_thread(
    name: &'static str,
    open: impl FnOnce() -> io::Result<Vec<Port>> + Send + 'static,
) -> io::Result<OwnedThread> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    OwnedThread::spawn(name, move |stopped| {
        runtime.block_on(async {
            match open().and_then(|ports| ports.into_iter().map(Port::serve).collect::<io::Result<Vec<_>>>())
            {
                Ok(_serving) => {
                    let _ = stopped.await;
                }
                Err(error) => tracing::error!(%error, name, "cannot serve the HTTP ports"),
            }
        });
    })
}

impl Port {
    fn serve(self) -> io::Result<tokio::task::JoinHandle<()>> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        Ok(tokio::spawn(async move { match self.connections.serve(listener, self.router).await {} }))
    }
}
