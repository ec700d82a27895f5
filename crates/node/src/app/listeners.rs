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
    /// AdminService and ControlService, if they have an address of their own.
    pub operations: Option<Listener>,
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
            let operations = config.control_listen.as_ref().map(|address| {
                let listener = Listener::bind(address, config.listen_mode);
                listener.map_err(|error| failed("control", address.clone(), error))
            });
            let (operations, admin) = (operations.transpose()?, Some(open("admin", config.admin)?));
            return Ok(Self { grpc, admin, operations, ratelimit: None });
        };
        let metrics = ports.metrics.as_ref();
        Ok(Self {
            grpc,
            operations: None,
            admin: ports.admin.then(|| open("admin", config.admin)).transpose()?,
            ratelimit: Some(RatelimitListeners {
                http: open("/healthcheck and /json", ports.http)?,
                debug: open("/rlconfig, /stats and /metrics", ports.debug)?,
                metrics: metrics.map(|(address, _)| open("metrics", *address)).transpose()?,
            }),
        })
    }
}
