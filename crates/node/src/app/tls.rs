//! Wiring of TLS: the ports that have it, and what watches their files.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::{FeatureSection, ServerConfig, TlsConfig};
use weir_time::clock::Clock;

use super::error::{AppError, PortTlsError};
use crate::telemetry::Metrics;
use crate::tls::{Handshakes, TlsPort, TlsShared, TlsSource};
use crate::watch::WatchedFiles;

/// gRPC is HTTP/2. The admin port speaks HTTP/1.1.
const GRPC: &[&[u8]] = &[b"h2"];
const ADMIN: &[&[u8]] = &[b"http/1.1"];

pub(super) struct Ports {
    pub(super) grpc: Option<Arc<TlsPort>>,
    pub(super) admin: Option<Arc<TlsPort>>,
    pub(super) control: Option<Arc<TlsPort>>,
    pub(super) features: HashMap<&'static str, Arc<TlsPort>>,
    pub(super) sources: Vec<Box<dyn WatchedFiles>>,
}

impl Ports {
    /// Reads the files of all ports.
    pub(super) fn open(
        server: &ServerConfig,
        sections: &[FeatureSection],
        metrics: &Metrics,
    ) -> Result<Self, AppError> {
        let mut ports =
            Self { grpc: None, admin: None, control: None, features: HashMap::new(), sources: Vec::new() };
        let of_features = sections.iter().filter_map(|it| Some((it.name(), it.port.as_ref()?)));
        let of_features = of_features.filter(|(_, port)| port.tls.is_some()).collect::<Vec<_>>();
        let none = server.tls.is_none() && server.admin_tls.is_none() && server.control_tls.is_none();
        if none && of_features.is_empty() {
            return Ok(ports);
        }
        let shared = TlsShared {
            handshakes: Handshakes::new(server.limits.max_handshakes),
            timeout: server.limits.tls_handshake_timeout.into(),
            metrics: metrics.show_tls()?,
        };
        let mut errors = Vec::new();
        let mut open = |section, name, config: &Option<TlsConfig>, protocols| {
            let config = config.as_ref()?;
            // Certificates are valid by the real time, whatever clock decides.
            match TlsSource::open(name, config, protocols, shared.clone(), Clock::System) {
                Ok((port, source)) => {
                    ports.sources.push(Box::new(source));
                    Some(port)
                }
                Err(mistakes) => {
                    errors.extend(mistakes.into_iter().map(|mistake| (section, mistake)));
                    None
                }
            }
        };
        let grpc = open("server.tls", "grpc", &server.tls, GRPC);
        let admin = open("server.admin_tls", "admin", &server.admin_tls, ADMIN);
        let control = open("server.control_tls", "control", &server.control_tls, GRPC);
        let features = of_features
            .into_iter()
            .filter_map(|(name, port)| Some((name, open(port.tls_section, name, &port.tls, port.protocols)?)))
            .collect();
        if errors.is_empty() {
            Ok(Self { grpc, admin, control, features, ..ports })
        } else {
            Err(PortTlsError(errors).into())
        }
    }
}
