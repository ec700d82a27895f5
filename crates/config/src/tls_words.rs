//! Choices of the sections `server.tls` and `server.admin_tls`.

/// Client authentication of a port (mutual TLS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked for one.
    #[default]
    None,
    /// They may have none, but not an invalid one.
    Optional,
    /// They must have a valid one.
    Required,
}

/// Which certificates of a chain are looked up in revocation lists.
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
    /// They are refused.
    Refuse,
    /// They are valid.
    Allow,
}

/// The policy for revocation lists that are older than their `nextUpdate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrlExpired {
    /// They know of no certificate.
    Refuse,
    /// They still decide.
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
