//! The ports of a service in the place of envoyproxy/ratelimit.

use std::net::SocketAddr;

/// The ports beside gRPC of a service that stands in for envoyproxy/ratelimit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatelimitPorts {
    /// `/healthcheck` and `/json`.
    pub http: SocketAddr,
    /// `/rlconfig`, `/stats` and `/metrics`.
    pub debug: SocketAddr,
    /// Metrics, on an address and a path of their own.
    pub metrics: Option<(SocketAddr, String)>,
    /// True if `/healthcheck` fails while there is no domain.
    pub needs_domain: bool,
}
