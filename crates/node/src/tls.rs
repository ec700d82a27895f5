//! TLS of the ports: certificates, handshakes, reload.
//!
//! ```text
//!   files ── certificate, key, authorities, revocation lists ── loaded.rs ─┐ mistakes: at the start, all of them;
//!     │                                                                    │ later a warning, and the old files stay
//!   source.rs  looks for changes                                         port.rs   one generation at a time
//!                                                                          │
//!   accept.rs  one handshake ── handshakes.rs  how many, and whose end ────┤
//!                            └─ share.rs       how much time of a worker   │
//!                                                                          └─ peers.rs  the certificates of clients
//! ```
//!
//! The provider (ring) is named here and not installed for the process, so no other part can change it.

mod accept;
mod authorities;
mod certificate;
mod checked_clients;
mod client;
mod client_names;
mod crl;
mod eviction_order;
mod files;
mod handshakes;
mod key_kinds;
mod linger;
mod loaded;
mod peers;
mod port;
mod roots;
mod share;
mod source;
mod trust_domains;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use weir_config::{TlsConfig, TlsError};
use weir_time::clock::Clock;

pub use self::accept::TlsConnection;
pub use self::client::{ClientTlsFiles, client_config};
pub use self::handshakes::{HandshakeSlot, Handshakes};
pub use self::peers::ClientCertificate;
pub use self::port::{PortProtocols, TlsPort, TlsShared};
pub use self::share::HandshakeShare;
pub use self::source::TlsSource;

/// Reads the files of a port to find every mistake in them: a [`PortTlsCheck`](weir_config::PortTlsCheck).
pub fn check(config: &TlsConfig) -> Vec<TlsError> {
    loaded::LoadedFiles::read(config, &Clock::System).err().unwrap_or_default()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
