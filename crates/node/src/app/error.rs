//! Errors of the wiring.

use std::{fmt, io};

use weir_config::{ListenAddress, TlsError};

use crate::access::CredentialFault;
use crate::feature::StartError;
use crate::server::ServerError;
use crate::telemetry::DecisionLogError;

/// Reason that a service could not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A socket cannot be opened.
    #[error("cannot listen on {address} ({what}): {error}")]
    Bind {
        /// The purpose of the socket.
        what: &'static str,
        /// The address that was tried.
        address: ListenAddress,
        /// The reason.
        error: io::Error,
    },
    /// The metrics contradict one another.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// Files of TLS are mistaken.
    #[error("TLS cannot be served: {0}")]
    Tls(#[from] PortTlsError),
    /// The decision log cannot be written.
    #[error(transparent)]
    DecisionLog(#[from] DecisionLogError),
    /// The audit cannot be written.
    #[error("the audit cannot be written to {target}: {error}")]
    Audit {
        /// The file.
        target: String,
        /// The reason.
        error: io::Error,
    },
    /// The files of tokens and keys have mistakes.
    #[error("the files of credentials have mistakes: {0}")]
    Credentials(#[from] CredentialFault),
    /// The admin thread cannot start.
    #[error("the admin server cannot start: {0}")]
    Admin(io::Error),
    /// The thread that watches the store and the files cannot start.
    #[error("the thread that watches the store and the files cannot start: {0}")]
    Background(io::Error),
    /// The port of operators cannot start.
    #[error("the port of operators cannot start: {0}")]
    Operations(io::Error),
    /// A text of a feature that says by itself what failed.
    #[error("{0}")]
    Complete(String),
    /// A feature cannot start.
    #[error("{name} cannot start: {error}")]
    Feature {
        /// The feature.
        name: &'static str,
        /// The reason.
        error: StartError,
    },
    /// The gRPC server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// The mistakes in the files of a port.
#[derive(Debug, thiserror::Error)]
pub struct PortTlsError(pub(super) Vec<(&'static str, TlsError)>);

impl fmt::Display for PortTlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (section, error)) in self.0.iter().enumerate() {
            write!(f, "{}{section}.{error}", if index > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl AppError {
    pub(super) fn of_feature(name: &'static str, error: StartError) -> Self {
        match error {
            StartError::Bind { what, address, error } => Self::Bind { what, address, error },
            StartError::Complete(text) => Self::Complete(text),
            error => Self::Feature { name, error },
        }
    }

    /// Returns the error of a feature that finds mistakes in the configuration.
    pub(super) fn refused_by((name, mistakes): (&'static str, Vec<String>)) -> Self {
        Self::Feature { name, error: StartError::Other(mistakes.join("; ")) }
    }
}
