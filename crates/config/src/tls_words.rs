//! Choices of the sections `server.tls` and `server.admin_tls`.

/// Client authentication of a port (mutual TLS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// Clients are not asked for a certificate.
    #[default]
    None,
    /// Clients may have no certificate, but not an invalid one.
    Optional,
    /// Clients must have a valid certificate.
    Required,
}

/// The certificates of a chain that are looked up in revocation lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrlDepth {
    /// The client's own.
    Leaf,
    /// All of them.
    Chain,
}

/// The policy for certificates whose authority has no revocation list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrlUnknown {
    /// Certificates that no list covers are refused.
    Refuse,
    /// Certificates that no list covers are valid.
    Allow,
}

/// The policy for revocation lists that are older than their `nextUpdate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrlExpired {
    /// Expired lists cover no certificate.
    Refuse,
    /// Expired lists still decide.
    Warn,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}
