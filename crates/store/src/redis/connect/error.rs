//! Why there is no connection to a node.

use std::io;

use redis::RedisError;
use rustls::pki_types::InvalidDnsNameError;
use weir_units::Micros;

use weir_config::SecretError;
use weir_config::TlsError;

/// Why a connection could not be made. No reason shows a password.
#[derive(Debug, thiserror::Error)]
pub(in crate::redis) enum ConnectError {
    /// The connection was refused.
    #[error(transparent)]
    Network(#[from] io::Error),
    /// The password is in a file that cannot be read.
    #[error("the password for it is in a file: {0}")]
    Password(#[from] SecretError),
    /// The certificates are of no use.
    #[error(transparent)]
    Certificates(#[from] TlsError),
    /// The host is none that a certificate can name.
    #[error(transparent)]
    Name(#[from] InvalidDnsNameError),
    /// The TLS handshake failed.
    #[error("TLS handshake failed: {0}")]
    Handshake(io::Error),
    /// No answer in time.
    #[error("no answer within {within}{}", if *.tls { "; does this port speak TLS?" } else { "" })]
    Silent {
        /// `connect_timeout`.
        within: Micros,
        /// Whether TLS was spoken. A server without TLS does not refuse a handshake: it waits for the line to end.
        tls: bool,
    },
    /// It answered with an error that makes every call fail.
    #[error(transparent)]
    Refused(RedisError),
    /// It requires a login.
    #[error("it wants a password (NOAUTH), and none is configured")]
    NoPassword,
    /// The password is another one.
    #[error("login refused: wrong user name or password, or the user is disabled (WRONGPASS)")]
    WrongPassword,
    /// It refused the login for another reason. Of its reply only the code is shown: a server that does not know
    /// `AUTH` repeats what it was sent.
    #[error("login refused ({code}): is this user, or a password, configured there?")]
    LoginRefused {
        /// The code.
        code: String,
    },
    /// The thread that reads the password has ended.
    #[error("the password could not be read: {0}")]
    Stopped(#[from] tokio::task::JoinError),
}

impl From<ConnectError> for String {
    fn from(error: ConnectError) -> Self {
        error.to_string()
    }
}
