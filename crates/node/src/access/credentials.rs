//! The files of credentials, read as one generation, and what a credential of a call proves.

use std::sync::Arc;

use weir_config::{IdentityConfig, JwtIssuer, read_jwks, read_tokens};
use weir_units::Micros;

use super::jwt::{IssuerKeys, ParsedJwt};
use super::jwt_key::JwtKey;
use super::names::CallerName;
use super::proof::{Proof, ProofSource};
use super::refusals::RefusalReason;
use super::tokens::{Digest, TokenTable};

pub(super) const MAX_CREDENTIAL: usize = 8 << 10;

/// Mistakes in the files of credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct CredentialFault(pub Vec<String>);

/// Tokens and keys of one generation.
#[derive(Debug)]
pub(super) struct CredentialFiles {
    generation: u64,
    tokens: Option<TokenTable>,
    issuers: Vec<IssuerKeys>,
}

impl CredentialFiles {
    pub(super) fn read(config: &IdentityConfig, generation: u64) -> Result<Self, CredentialFault> {
        let mut faults = Vec::new();
        let tokens = match config.tokens_file.as_deref().map(read_tokens) {
            Some(Ok(entries)) => Some(TokenTable::new(entries)),
            Some(Err(mistakes)) => {
                faults.extend(mistakes);
                None
            }
            None => None,
        };
        let mut issuers = Vec::new();
        for config in &config.jwt {
            match read_issuer(config) {
                Ok(issuer) => issuers.push(issuer),
                Err(mistakes) => faults.extend(mistakes),
            }
        }
        if faults.is_empty() {
            Ok(Self { generation, tokens, issuers })
        } else {
            Err(CredentialFault(faults))
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Proves a credential by the tokens; `None` if it may be a JWT.
    pub(super) fn token(&self, digest: &Digest, now: Micros) -> Option<Result<Proof, RefusalReason>> {
        let entry = self.tokens.as_ref().and_then(|tokens| tokens.find(digest))?;
        let until = entry.end.map(|end| Micros(end.saturating_mul(1_000_000)));
        if until.is_some_and(|until| now >= until) {
            return Some(Err(RefusalReason::Expired));
        }
        let name = CallerName::one(&format!("token:{}", entry.name));
        Some(Ok(Proof { name, source: ProofSource::Token(*digest), until }))
    }

    /// Finds the issuer and the key of a JWT, and checks everything but its signature.
    pub(super) fn jwt<'t>(
        &self,
        credential: &'t str,
        now: Micros,
    ) -> Result<(ParsedJwt<'t>, Arc<JwtKey>), RefusalReason> {
        if self.issuers.is_empty() {
            return Err(RefusalReason::Unknown);
        }
        ParsedJwt::check(credential, &self.issuers, now)
    }

    /// Checks that what proved a caller under an older generation still stands, and returns when it ends. `until` is
    /// when it did so far: the end of a JWT is its own.
    pub(super) fn still_proves(
        &self,
        source: &ProofSource,
        until: Option<Micros>,
        now: Micros,
    ) -> Result<Option<Micros>, RefusalReason> {
        match source {
            ProofSource::Connection => Ok(until),
            ProofSource::Token(digest) => {
                self.token(digest, now).ok_or(RefusalReason::Unknown)?.map(|proof| proof.until)
            }
            ProofSource::Jwt(key) if self.issuers.iter().any(|issuer| issuer.has(key)) => Ok(until),
            ProofSource::Jwt(_) => Err(RefusalReason::Unknown),
        }
    }
}

fn read_issuer(config: &JwtIssuer) -> Result<IssuerKeys, Vec<String>> {
    let keys = read_jwks(&config.jwks_file)?;
    IssuerKeys::new(config.clone(), keys).map_err(|mistake| vec![mistake])
}
