//! The sockets of a service.

use std::net::{SocketAddr, TcpListener};

use weir_config::{ListenAddress, ServerConfig};

use super::AppError;
use crate::ratelimit::RatelimitListeners;
use crate::server::{Listener, listen_tcp};

/// The sockets that a service listens on.
pub struct Listeners {
    /// gRPC.
    pub grpc: Listener,
    /// Metrics and probes.
    pub admin: Option<TcpListener>,
    /// The HTTP ports in the place of envoyproxy/ratelimit.
    pub ratelimit: Option<RatelimitListeners>,
}

impl Listeners {
    /// Binds what the configuration names.
    pub fn bind(config: &ServerConfig) -> Result<Self, AppError> {
        let failed = |what, address: ListenAddress, error| AppError::Bind { what, address, error };
        let open = |what, address: SocketAddr| {
            listen_tcp(address).map_err(|error| failed(what, address.into(), error))
        };
        let grpc = Listener::bind(&config.listen, config.listen_mode);
        let grpc = grpc.map_err(|error| failed("gRPC", config.listen.clone(), error))?;
        let Some(ports) = &config.ratelimit else {
            return Ok(Self { grpc, admin: Some(open("admin", config.admin)?), ratelimit: None });
        };
        let metrics = ports.metrics.as_ref();
        Ok(Self {
            grpc,
            admin: ports.admin.then(|| open("admin", config.admin)).transpose()?,
            ratelimit: Some(RatelimitListeners {
                http: open("/healthcheck and /json", ports.http)?,
                debug: open("/rlconfig, /stats and /metrics", ports.debug)?,
                metrics: metrics.map(|(address, _)| open("metrics", *address)).transpose()?,
            }),
        })
    }
}
