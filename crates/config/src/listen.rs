//! The listen address of gRPC: TCP, or a Unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::unix_path::unix_path;
use super::values::{Scalar, quote};

/// The listen address of gRPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port on one or all addresses of this machine.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// True if two ports cannot be open at once.
pub(super) fn same_address(one: &ListenAddress, other: &ListenAddress) -> bool {
    match (one, other) {
        (ListenAddress::Tcp(one), ListenAddress::Tcp(other)) => one == other && one.port() != 0,
        (one, other) => one == other,
    }
}

/// Parses `IP:PORT` or `unix:PATH`.
pub(super) fn listen_address(scalar: Scalar<'_>) -> Result<ListenAddress, String> {
    if let Some(path) = unix_path(scalar.text) {
        return path.map(ListenAddress::Unix).map_err(|error| error.to_string());
    }
    let help = "is not an IP address with a port, such as 127.0.0.1:8081 or [::1]:8081, nor unix:PATH";
    scalar.text.parse().map(ListenAddress::Tcp).map_err(|_| format!("{} {help}", quote(scalar.text)))
}

/// Parses a file mode as in `chmod`: three octal digits, with or without a leading 0.
pub(super) fn file_mode(scalar: Scalar<'_>) -> Result<u32, String> {
    let digits = scalar.text.strip_prefix('0').unwrap_or(scalar.text);
    let octal = digits.len() == 3 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    u32::from_str_radix(digits, 8).ok().filter(|_| octal).ok_or_else(|| {
        format!(
            "{} is not the mode of a file; write three octal digits, such as \"0660\"",
            quote(scalar.text)
        )
    })
}
