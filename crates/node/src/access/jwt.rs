//! JWTs: everything is checked before the signature. The library checks only that; claims and times are compared here,
//! because it compares `iss` and `aud` only where they are present.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::Value;
use weir_config::{Jwk, JwtAlgorithm, JwtIssuer, MAX_CALLER, is_claim};
use weir_units::Micros;

use super::jwt_key::JwtKey;
use super::names::CallerName;
use super::proof::{Proof, ProofSource};
use super::refusals::RefusalReason;
use super::signatures;

/// Largest difference between the clocks of an issuer and of this machine.
const LEEWAY: Micros = Micros::from_secs(30);

#[derive(Debug)]
pub(super) struct IssuerKeys {
    config: JwtIssuer,
    keys: Vec<Arc<JwtKey>>,
}

/// A JWT whose claims fit, and whose signature is not checked yet.
#[derive(Debug)]
pub(super) struct ParsedJwt<'t> {
    /// Header and claims, as they were signed.
    signed: &'t str,
    signature: &'t str,
    name: String,
    until: Micros,
}

/// The members of a JSON object, each name once.
struct Members(Vec<(String, Value)>);

impl IssuerKeys {
    pub(super) fn new(config: JwtIssuer, keys: Vec<Jwk>) -> Result<Self, String> {
        signatures::install();
        let mut ours = Vec::new();
        for jwk in keys.into_iter().filter(|key| config.algorithms.contains(&key.algorithm)) {
            let key = JwtKey::new(&config.issuer, jwk);
            let key = key.map_err(|mistake| format!("{}: {mistake}", config.jwks_file.display()))?;
            ours.push(Arc::new(key));
        }
        Ok(Self { config, keys: ours })
    }

    /// True if this key is still one of the issuer's.
    pub(super) fn has(&self, key: &JwtKey) -> bool {
        self.keys.iter().any(|own| own.is_same_as(key))
    }

    /// Finds the key of a header. Without a `kid`, exactly one must fit.
    fn key(&self, algorithm: JwtAlgorithm, kid: Option<&str>) -> Option<&Arc<JwtKey>> {
        let mut fits = self
            .keys
            .iter()
            .filter(|key| key.algorithm() == algorithm && kid.is_none_or(|kid| key.kid() == Some(kid)));
        let first = fits.next()?;
        fits.next().is_none().then_some(first)
    }
}

impl<'t> ParsedJwt<'t> {
    pub(super) fn check(
        token: &'t str,
        issuers: &[IssuerKeys],
        now: Micros,
    ) -> Result<(Self, Arc<JwtKey>), RefusalReason> {
        let malformed = || RefusalReason::Malformed;
        let (signed, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or_else(malformed)?;
        if claims.contains('.') || signature.is_empty() {
            return Err(RefusalReason::Malformed);
        }
        let header = Members::read(header).ok_or_else(malformed)?;
        if header.has("crit") || header.has("enc") {
            return Err(RefusalReason::Malformed);
        }
        let algorithm = header.text("alg").ok_or_else(malformed)?;
        let algorithm = JwtAlgorithm::ALL.iter().find(|(name, _)| *name == algorithm);
        let (_, algorithm) = algorithm.ok_or(RefusalReason::Unknown)?;
        let kid = match header.get("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.as_str()),
            Some(_) => return Err(RefusalReason::Malformed),
        };
        let claims = Members::read(claims).ok_or_else(malformed)?;
        let issuer = claims.text("iss").ok_or(RefusalReason::Claims)?;
        let issuer =
            issuers.iter().find(|known| known.config.issuer == issuer).ok_or(RefusalReason::Unknown)?;
        let key = issuer.key(*algorithm, kid).ok_or(RefusalReason::Unknown)?;
        let config = &issuer.config;
        let is_ours = |audience: &Value| audience.as_str() == Some(&config.audience);
        let audience = match claims.get("aud") {
            Some(Value::Array(several)) => several.iter().any(is_ours),
            Some(one) => is_ours(one),
            None => false,
        };
        let claim = claims.text(&config.claim).filter(|claim| is_claim(claim));
        let (true, Some(claim)) = (audience, claim) else { return Err(RefusalReason::Claims) };
        let name = format!("jwt:{}:{claim}", config.issuer);
        if name.len() > MAX_CALLER {
            return Err(RefusalReason::Claims);
        }
        let until = claims.time("exp").ok_or(RefusalReason::Claims)?;
        let until = Micros(until.0.saturating_add(LEEWAY.0));
        let from = match claims.get("nbf") {
            None => Micros::ZERO,
            Some(_) => claims.time("nbf").ok_or(RefusalReason::Claims)?,
        };
        if now >= until || now.0.saturating_add(LEEWAY.0) < from.0 {
            return Err(RefusalReason::Expired);
        }
        Ok((Self { signed, signature, name, until }, Arc::clone(key)))
    }

    pub(super) fn verify(self, key: Arc<JwtKey>) -> Result<Proof, RefusalReason> {
        if !key.verifies(self.signature, self.signed) {
            return Err(RefusalReason::Signature);
        }
        let name = CallerName::one(&self.name);
        Ok(Proof { name, source: ProofSource::Jwt(key), until: Some(self.until) })
    }
}

impl Members {
    fn read(encoded: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Reads a time in seconds since 1970. Fractions are dropped.
    fn time(&self, name: &str) -> Option<Micros> {
        const LATEST: f64 = 253_402_300_800.0;
        let seconds = self.get(name)?.as_f64().filter(|seconds| (0.0..=LATEST).contains(seconds))?;
        Some(Micros::from_secs(seconds as u64))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EachOnce;
        impl<'de> Visitor<'de> for EachOnce {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members(Vec::new());
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if members.has(&name) {
                        return Err(A::Error::custom("a name is given twice"));
                    }
                    members.0.push((name, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(EachOnce)
    }
}
