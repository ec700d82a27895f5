//! Ports that others than this machine reach without TLS or without identity, and their open paths.

use super::{
    AdminPath, ClientAuth, Config, FeatureSection, ListenAddress, Plaintext, ServerConfig, TlsConfig,
};

impl Config {
    /// True if calls need a credential: everybody who has none is anonymous.
    #[must_use]
    pub fn has_identity(&self) -> bool {
        let asks =
            |tls: &Option<TlsConfig>| tls.as_ref().is_some_and(|tls| tls.client_auth != ClientAuth::None);
        let certificates =
            asks(&self.server.tls) || asks(&self.server.admin_tls) || asks(&self.server.control_tls);
        let certificates = certificates || self.sections.iter().any(FeatureSection::asks_for_certificates);
        certificates || self.server.identity.is_some() || self.authorize.is_some()
    }

    /// Returns everything that an operator should know about who reaches the ports, a line each.
    #[must_use]
    pub fn exposures(&self) -> Vec<String> {
        self.exposure().into_iter().chain(self.open_paths()).collect()
    }

    /// Paths of the admin port that other machines read without a credential, although the server has identity.
    fn open_paths(&self) -> Option<String> {
        let ServerConfig { admin, admin_open, .. } = &self.server;
        if !self.has_identity() || admin_open.is_empty() || admin.ip().to_canonical().is_loopback() {
            return None;
        }
        let paths = admin_open.iter().map(|open| match open {
            AdminPath::Metrics => "/metrics",
            AdminPath::UiData => "/ui/data",
        });
        Some(format!(
            "server.admin_open: whoever reaches {admin} reads {} without a credential",
            paths.collect::<Vec<_>>().join(" and ")
        ))
    }

    /// Returns what an operator should know about the ports, with what to write, if there is something.
    #[must_use]
    pub fn exposure(&self) -> Option<String> {
        let mut ports = exposed(&self.server);
        ports.extend(self.sections.iter().filter_map(FeatureSection::exposed));
        if ports.is_empty() || self.server.plaintext == Plaintext::Intended {
            return None;
        }
        let (lacks, write) = match self.has_identity() {
            true => ("TLS", "`server.tls`"),
            false => ("TLS and identity", "`server.tls`, `server.identity` and `authorize`"),
        };
        Some(format!(
            "{} can be reached from other machines, without {lacks}: write {write} (docs/security.md), or \
             `server.plaintext: intended` if a mesh or a proxy in front has them",
            ports.join(" and ")
        ))
    }
}

/// Returns the plain-text ports that are not this machine's alone.
pub(super) fn exposed(server: &ServerConfig) -> Vec<String> {
    let mut ports = Vec::new();
    if let ListenAddress::Tcp(address) = server.listen
        && server.tls.is_none()
        && !address.ip().to_canonical().is_loopback()
    {
        ports.push(format!("server.listen {address}"));
    }
    if let Some(ListenAddress::Tcp(address)) = server.control_listen
        && server.control_tls.is_none()
        && !address.ip().to_canonical().is_loopback()
    {
        ports.push(format!("server.control_listen {address}"));
    }
    if server.admin_tls.is_none() && !server.admin.ip().to_canonical().is_loopback() {
        ports.push(format!("server.admin {}", server.admin));
    }
    ports
}
