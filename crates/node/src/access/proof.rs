//! The result of a verified credential, and the condition under which it stays valid.

use std::sync::Arc;

use weir_units::Micros;

use super::jwt_key::JwtKey;
use super::names::CallerName;
use super::tokens::Digest;

/// A credential that was found good.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) name: CallerName,
    pub(super) source: ProofSource,
    /// Time at which it ends, in microseconds since 1970.
    pub(super) until: Option<Micros>,
}

/// The condition under which a credential stays valid.
#[derive(Debug, Clone)]
pub(super) enum ProofSource {
    /// Nothing: the connection itself.
    Connection,
    /// A line of the tokens file.
    Token(Digest),
    Jwt(Arc<JwtKey>),
}

impl Proof {
    /// The proof of the connection itself, or of the proxy at its other end.
    pub(super) const fn of_connection(name: CallerName) -> Self {
        Self { name, source: ProofSource::Connection, until: None }
    }
}
