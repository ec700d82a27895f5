//! The sockets of a service.

use std::net::{SocketAddr, TcpListener};

use weir_config::{Config, FeaturePort, ServerConfig};

use super::AppError;
use crate::ratelimit::RatelimitListeners;
use crate::server::{Listener, Serving, listen_tcp};

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
    /// The ports of features, by the keys of their sections.
    pub features: Vec<(&'static str, Listener)>,
    /// What is called once they are served, when nothing can be refused any more.
    pub serving: Serving,
}

impl Listeners {
    /// Binds what the configuration names.
    pub fn bind(config: &ServerConfig) -> Result<Self, AppError> {
        let metrics = Self::bind_metrics(config)?;
        Self::bind_others(config, metrics)
    }

    /// Binds the address of the metrics alone, if they have one of their own.
    pub fn bind_metrics(config: &ServerConfig) -> Result<Option<TcpListener>, AppError> {
        let metrics = config.ratelimit.as_ref().and_then(|ports| ports.metrics.as_ref());
        metrics.map(|(address, _)| open("metrics", *address)).transpose()
    }

    /// Binds everything else.
    pub fn bind_others(config: &ServerConfig, metrics: Option<TcpListener>) -> Result<Self, AppError> {
        let grpc = Listener::bind(&config.listen, config.listen_mode);
        let grpc =
            grpc.map_err(|error| AppError::Bind { what: "gRPC", address: config.listen.clone(), error })?;
        let Some(ports) = &config.ratelimit else {
            let operations = config.control_listen.as_ref().map(|address| {
                let listener = Listener::bind(address, config.listen_mode);
                listener.map_err(|error| AppError::Bind { what: "control", address: address.clone(), error })
            });
            let (operations, admin) = (operations.transpose()?, Some(open("admin", config.admin)?));
            let (features, serving) = (Vec::new(), Serving::default());
            return Ok(Self { grpc, admin, operations, ratelimit: None, features, serving });
        };
        Ok(Self {
            grpc,
            operations: None,
            admin: ports.admin.then(|| open("admin", config.admin)).transpose()?,
            ratelimit: Some(RatelimitListeners {
                http: open("/healthcheck and /json", ports.http)?,
                debug: open("/rlconfig, /stats and /metrics", ports.debug)?,
                metrics,
            }),
            features: Vec::new(),
            serving: Serving::default(),
        })
    }

    /// Binds the ports of features as well.
    pub fn with_features(mut self, config: &Config) -> Result<Self, AppError> {
        for section in &config.sections {
            let Some(FeaturePort { address, .. }) = &section.port else { continue };
            let failed = |error| AppError::Bind { what: section.name(), address: address.clone(), error };
            let listener = Listener::bind(address, config.server.listen_mode).map_err(failed)?;
            self.features.push((section.name(), listener));
        }
        Ok(self)
    }
}

fn open(what: &'static str, address: SocketAddr) -> Result<TcpListener, AppError> {
    listen_tcp(address).map_err(|error| AppError::Bind { what, address: address.into(), error })
}
