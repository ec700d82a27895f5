//! Errors of connecting to a node.

use std::io;

use redis::RedisError;
use rustls::pki_types::InvalidDnsNameError;
use weir_units::Micros;

use crate::redis::password_command::CommandError;
use weir_config::SecretError;
use weir_config::TlsError;

/// An error of connecting. No message shows a password.
#[derive(Debug, thiserror::Error)]
pub(in crate::redis) enum ConnectError {
    /// A network error, such as a refused connection.
    #[error(transparent)]
    Network(#[from] io::Error),
    /// The password file cannot be read.
    #[error("the password for it is in a file: {0}")]
    Password(#[from] SecretError),
    /// The command that prints the password did not.
    #[error("the password for it is printed by a command: {0}")]
    Command(#[from] CommandError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] TlsError),
    /// The host is not a valid name for TLS.
    #[error(transparent)]
    Name(#[from] InvalidDnsNameError),
    /// The TLS handshake failed.
    #[error("TLS handshake failed: {0}")]
    Handshake(io::Error),
    /// A timeout.
    #[error("no answer within {within}{}", if *.tls { "; does this port speak TLS?" } else { "" })]
    Silent {
        within: Micros,
        /// True if TLS is configured. A server without TLS does not refuse a handshake; it waits for the line to end.
        tls: bool,
    },
    /// The server answered with an error with which every call would fail.
    #[error(transparent)]
    Refused(RedisError),
    /// The server requires a login (NOAUTH).
    #[error("it wants a password (NOAUTH), and none is configured")]
    NoPassword,
    /// The user name or the password is wrong, or the user is disabled (WRONGPASS).
    #[error("login refused: wrong user name or password, or the user is disabled (WRONGPASS)")]
    WrongPassword,
    /// The server refused the login for another reason. Only the error code is shown: a server that does not know
    /// `AUTH` echoes its arguments.
    #[error("login refused ({code}): is this user, or a password, configured there?")]
    LoginRefused { code: String },
    /// The server has no such database, or this user may not use it.
    #[error("database {database} cannot be selected: {reason}")]
    Database { database: u32, reason: String },
    /// The blocking task that reads the password did not complete.
    #[error("cannot read the password: {0}")]
    Stopped(#[from] tokio::task::JoinError),
}

impl ConnectError {
    pub(super) fn refuses_password(&self) -> bool {
        matches!(self, Self::WrongPassword | Self::LoginRefused { .. })
    }
}

impl From<ConnectError> for String {
    fn from(error: ConnectError) -> Self {
        error.to_string()
    }
}
