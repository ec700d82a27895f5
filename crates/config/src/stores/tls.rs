//! TLS of connections that we open: the files that say whom to trust and who we are. They are read where connections
//! are opened; here they are only named.

use std::path::PathBuf;

/// Where a client's certificates are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// Certificates of the authorities to trust, and of no others; `None` trusts those of the system.
    pub ca_file: Option<PathBuf>,
    /// Who we are, for servers that want to know.
    pub identity: Option<Identity>,
}

/// A client's certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, with those between it and the authority's after it.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
}

/// Why the files are of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct TlsError {
    /// Which of them: `ca_file`, `cert_file` or `key_file`.
    pub file: &'static str,
    /// Why, without what a key file says.
    pub reason: String,
}

/// Reads the files as an opener of connections does, so that a mistake in them is reported with the others.
pub type TlsCheck = fn(&ClientFiles) -> Result<(), TlsError>;
