//! TLS of one listening port: its current files, and their replacement.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use weir_config::{TlsConfig, TlsError, TlsVersion};
use weir_time::clock::Clock;

use super::authorities::Authorities;
use super::handshakes::Handshakes;
use super::loaded::LoadedFiles;
use super::peers::ConnectedCertificates;
use super::provider;
use crate::telemetry::{TlsLoad, TlsMetrics};

/// The protocols that a port offers (ALPN).
pub type PortProtocols = &'static [&'static [u8]];

/// State shared by all ports with TLS.
#[derive(Clone)]
pub struct TlsShared {
    /// The bound of handshakes.
    pub handshakes: Arc<Handshakes>,
    /// Time for which a handshake may take.
    pub timeout: Duration,
    /// Counters of loads and handshakes.
    pub metrics: Arc<TlsMetrics>,
}

/// TLS of one port. No other port has its ticket keys, and its workers share them.
pub struct TlsPort {
    name: &'static str,
    config: TlsConfig,
    protocols: PortProtocols,
    pub(super) shared: TlsShared,
    pub(super) clock: Clock,
    current: ArcSwap<PortFiles>,
    pub(super) certificates: ConnectedCertificates,
    reload: Mutex<()>,
}

pub(super) struct PortFiles {
    pub(super) server: Arc<ServerConfig>,
    pub(super) clients: Option<ClientFilesInUse>,
}

/// The authorities and revocation lists in use.
pub(super) struct ClientFilesInUse {
    verifier: Arc<dyn ClientCertVerifier>,
    digest: [u8; 32],
    pub(super) revision: u64,
}

impl TlsPort {
    /// Reads the files of a port, or returns every mistake in them.
    pub(super) fn open(
        name: &'static str,
        config: &TlsConfig,
        protocols: PortProtocols,
        shared: TlsShared,
        clock: Clock,
    ) -> Result<Arc<Self>, Vec<TlsError>> {
        let loaded = LoadedFiles::read(config, &clock)?;
        loaded.report(name, &shared.metrics);
        let files = PortFiles::new(config, protocols, loaded, None).map_err(|error| vec![error])?;
        Ok(Arc::new(Self {
            name,
            config: config.clone(),
            protocols,
            shared,
            clock,
            current: ArcSwap::from_pointee(files),
            certificates: ConnectedCertificates::default(),
            reload: Mutex::new(()),
        }))
    }

    pub(super) fn current(&self) -> Arc<PortFiles> {
        self.current.load_full()
    }

    /// Reads the files again. If they are mistaken, the old ones stay. Otherwise the certificates of all connections
    /// are judged by the new ones. Mistakes are logged and returned. It blocks.
    pub(super) fn reload(&self) -> Result<(), Vec<String>> {
        let _one_at_a_time = self.reload.lock();
        let old = self.current();
        let files = LoadedFiles::read(&self.config, &self.clock).and_then(|loaded| {
            loaded.report(self.name, &self.shared.metrics);
            PortFiles::new(&self.config, self.protocols, loaded, Some(&old)).map_err(|error| vec![error])
        });
        match files {
            Err(errors) => {
                self.shared.metrics.loaded(TlsLoad::Refused);
                let port = self.name;
                for error in &errors {
                    tracing::warn!(port, %error, "TLS files rejected; keeping the previous ones");
                }
                Err(errors.iter().map(|error| format!("{port}: {error}")).collect())
            }
            Ok(files) => {
                self.shared.metrics.loaded(TlsLoad::Done);
                self.current.store(Arc::new(files));
                self.judge();
                tracing::info!(port = self.name, "TLS files reloaded");
                Ok(())
            }
        }
    }

    /// Ends the connections of certificates that are no longer valid.
    fn judge(&self) {
        let current = self.current();
        let Some(clients) = &current.clients else { return };
        for certificate in self.certificates.all() {
            if certificate.verified() == clients.revision {
                continue;
            }
            match clients.verify(&certificate.chain(), &self.clock) {
                Ok(()) => certificate.set_verified(clients.revision),
                Err(error) => {
                    tracing::debug!(port = self.name, %error, "client certificate became invalid");
                    certificate.reject();
                }
            }
        }
    }
}

impl PortFiles {
    /// Makes the library's configuration. New authorities or lists get new ticket keys: tickets of old sessions would
    /// pass without being verified.
    fn new(
        config: &TlsConfig,
        protocols: PortProtocols,
        loaded: LoadedFiles,
        old: Option<&Self>,
    ) -> Result<Self, TlsError> {
        const WITH_12: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
        const ONLY_13: &[&SupportedProtocolVersion] = &[&TLS13];
        let versions = match config.min_version {
            TlsVersion::V12 => WITH_12,
            TlsVersion::V13 => ONLY_13,
        };
        let failed = |error: rustls::Error| TlsError { file: "cert_file", reason: error.to_string() };
        let clients = loaded.authorities.map(|authorities| ClientFilesInUse::new(authorities, old));
        let revision = |files: &Self| files.clients.as_ref().map(|clients| clients.revision);
        let same = old.filter(|old| revision(old) == clients.as_ref().map(|clients| clients.revision));
        let ticketer = same.map_or_else(
            || rustls::crypto::ring::Ticketer::new().map_err(failed),
            |old| Ok(Arc::<dyn ProducesTickets>::clone(&old.server.ticketer)),
        )?;
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(versions).map_err(failed)?;
        let builder = match &clients {
            Some(clients) => builder.with_client_cert_verifier(Arc::clone(&clients.verifier)),
            None => builder.with_no_client_auth(),
        };
        let key = SingleCertAndKey::from(loaded.certificate.key);
        let mut server = builder.with_cert_resolver(Arc::new(key));
        server.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        server.ticketer = ticketer;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        // Data before the client's Finished could be replayed, or would come from nobody in particular.
        server.max_early_data_size = 0;
        server.send_half_rtt_data = false;
        Ok(Self { server: Arc::new(server), clients })
    }
}

impl ClientFilesInUse {
    /// Keeps what is in use if the files have not changed.
    fn new(authorities: Authorities, old: Option<&PortFiles>) -> Self {
        let Authorities { verifier, digest, .. } = authorities;
        match old.and_then(|old| old.clients.as_ref()) {
            Some(old) if old.digest == digest => Self { verifier, digest, revision: old.revision },
            old => Self { verifier, digest, revision: old.map_or(0, |old| old.revision) + 1 },
        }
    }

    /// Verifies a chain as a handshake does.
    pub(super) fn verify(&self, chain: &[CertificateDer<'_>], clock: &Clock) -> Result<(), rustls::Error> {
        let (own, others) = chain.split_first().ok_or(rustls::Error::NoCertificatesPresented)?;
        let now = UnixTime::since_unix_epoch(Duration::from_micros(clock.now().0));
        self.verifier.verify_client_cert(own, others, now).map(drop)
    }
}

impl LoadedFiles {
    /// Shows when its files expire, and logs what an operator should know.
    fn report(&self, port: &'static str, metrics: &TlsMetrics) {
        metrics.certificate_expires(port, self.certificate.expires);
        let Some(authorities) = &self.authorities else { return };
        for warning in &authorities.warnings {
            tracing::warn!(port, "{warning}");
        }
        if let Some(next) = authorities.next_update {
            metrics.next_update(port, next);
        }
    }
}
