//! Client-side TLS: the paths of the trusted CAs and of the client certificate. The files are read when connections are
//! opened.

use std::path::PathBuf;

/// The certificate files of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// The only trusted CA certificates; `None` trusts those of the system.
    pub ca_file: Option<PathBuf>,
    /// The client certificate, for servers that require one.
    pub identity: Option<Identity>,
}

/// A client's certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, followed by its intermediates.
    pub cert_file: PathBuf,
    /// The private key of the certificate.
    pub key_file: PathBuf,
}

/// An error in a certificate file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct TlsError {
    /// The setting: `ca_file`, `cert_file` or `key_file`.
    pub file: &'static str,
    /// The reason, without the content of a key file.
    pub reason: String,
}

/// Validates the files as a connection would, so that their mistakes are reported with all others.
pub type TlsCheck = fn(&ClientFiles) -> Result<(), TlsError>;
