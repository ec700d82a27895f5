//! The sockets of a service.

use std::net::{SocketAddr, TcpListener};

use weir_config::{Config, FeaturePort, ServerConfig};

use super::AppError;
use crate::server::{Listener, Serving, listen_tcp};

/// The sockets that a service listens on.
pub struct Listeners {
    /// gRPC.
    pub grpc: Listener,
    /// Metrics and probes.
    pub admin: Option<TcpListener>,
    /// AdminService and ControlService, if they have an address of their own.
    pub operations: Option<Listener>,
    /// The ports of features, by the keys of their sections.
    pub features: Vec<(&'static str, Listener)>,
    /// Callback once the ports are served, when nothing can be refused any more.
    pub serving: Serving,
}

impl Listeners {
    /// Binds what the configuration names. A feature that serves alone binds its other ports when it starts.
    pub fn bind(config: &ServerConfig) -> Result<Self, AppError> {
        let grpc = Listener::bind(&config.listen, config.listen_mode);
        let grpc =
            grpc.map_err(|error| AppError::Bind { what: "gRPC", address: config.listen.clone(), error })?;
        let operations = config.control_listen.as_ref().filter(|_| config.alone.is_none()).map(|address| {
            let listener = Listener::bind(address, config.listen_mode);
            listener.map_err(|error| AppError::Bind { what: "control", address: address.clone(), error })
        });
        let operations = operations.transpose()?;
        let has_admin = config.alone.as_ref().is_none_or(|alone| alone.admin);
        let admin = has_admin.then(|| open("admin", config.admin)).transpose()?;
        Ok(Self { grpc, admin, operations, features: Vec::new(), serving: Serving::default() })
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
