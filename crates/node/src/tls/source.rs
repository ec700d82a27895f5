//! The files of a port, watched.

use std::path::PathBuf;
use std::sync::Arc;

use weir_config::{FilesSnapshot, Settling, TlsConfig, TlsError};
use weir_time::clock::Clock;

use super::port::{PortProtocols, TlsPort, TlsShared};
use crate::readiness::FileKind;
use crate::watch::{ReloadReport, WatchedFiles};

/// The files of a port, which are read again when they change.
pub struct TlsSource {
    port: Arc<TlsPort>,
    paths: Vec<PathBuf>,
    files: Settling<FilesSnapshot>,
}

impl TlsSource {
    /// Reads the files of a port, and watches them; or returns every mistake in them.
    pub fn open(
        name: &'static str,
        config: &TlsConfig,
        protocols: PortProtocols,
        shared: TlsShared,
        clock: Clock,
    ) -> Result<(Arc<TlsPort>, Self), Vec<TlsError>> {
        let required = [&config.cert_file, &config.key_file].into_iter();
        let clients = config.client_ca_file.iter().chain(&config.client_crl_file);
        let domains = config.trust_domains.values();
        let paths: Vec<PathBuf> = required.chain(clients).chain(domains).cloned().collect();
        // Before the files are read: a change meanwhile is found by a later look.
        let files = Settling::new(FilesSnapshot::new(&paths));
        let port = TlsPort::open(name, config, protocols, shared, clock)?;
        Ok((Arc::clone(&port), Self { port, paths, files }))
    }
}

impl WatchedFiles for TlsSource {
    fn kind(&self) -> FileKind {
        FileKind::TLS
    }

    fn poll(&mut self) -> Option<ReloadReport> {
        if !self.files.is_settled(FilesSnapshot::new(&self.paths)) {
            return None;
        }
        self.files.was_read();
        Some(self.port.reload())
    }

    fn reload(&mut self) -> ReloadReport {
        self.files.is_settled(FilesSnapshot::new(&self.paths));
        self.files.was_read();
        self.port.reload()
    }
}
