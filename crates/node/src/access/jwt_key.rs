//! A public key of an issuer of JWTs.

use std::fmt;

use jsonwebtoken::{Algorithm, DecodingKey};
use weir_config::{Jwk, JwtAlgorithm};

/// A public key.
pub(super) struct JwtKey {
    issuer: String,
    jwk: Jwk,
    key: DecodingKey,
}

impl JwtKey {
    pub(super) fn new(issuer: &str, jwk: Jwk) -> Result<Self, String> {
        let key = match (jwk.algorithm, &jwk.numbers[..]) {
            (JwtAlgorithm::Rs256, [n, e]) => DecodingKey::from_rsa_components(n, e),
            (JwtAlgorithm::Es256, [x, y]) => DecodingKey::from_ec_components(x, y),
            (JwtAlgorithm::EdDsa, [x]) => DecodingKey::from_ed_components(x),
            _ => return Err("a key lacks numbers".to_owned()),
        };
        let key = key.map_err(|error| error.to_string())?;
        Ok(Self { issuer: issuer.to_owned(), jwk, key })
    }

    pub(super) fn algorithm(&self) -> JwtAlgorithm {
        self.jwk.algorithm
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.jwk.kid.as_deref()
    }

    /// True if both are the same key of the same issuer.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.jwk == other.jwk
    }

    /// Checks a signature of header and claims.
    pub(super) fn verifies(&self, signature: &str, signed: &str) -> bool {
        let algorithm = match self.jwk.algorithm {
            JwtAlgorithm::Rs256 => Algorithm::RS256,
            JwtAlgorithm::Es256 => Algorithm::ES256,
            JwtAlgorithm::EdDsa => Algorithm::EdDSA,
        };
        jsonwebtoken::crypto::verify(signature, signed.as_bytes(), &self.key, algorithm).unwrap_or(false)
    }
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtKey")
            .field("issuer", &self.issuer)
            .field("kid", &self.jwk.kid)
            .finish_non_exhaustive()
    }
}
