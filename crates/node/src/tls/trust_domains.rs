//! Trust domains of SPIFFE: an ID of a domain needs a certificate of the domain's own authorities.
//!
//! It is checked where certificates are verified, so also when a session is resumed and when files have changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::digest::Context;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error};
use weir_config::{TRUST_DOMAINS, TlsConfig, TlsError};

use super::checked_clients::{CheckedClients, ClientCheck};
use super::files::TlsFile;
use super::provider;
use super::roots::roots;
use crate::access::CallerName;

/// The authorities of each domain, which verify certificates with a SPIFFE ID of it.
#[derive(Debug)]
pub(super) struct TrustDomains(BTreeMap<String, Arc<dyn ClientCertVerifier>>);

impl TrustDomains {
    /// Reads the files of the domains, and adds them to `digest`. Without domains, `all` stays as it is.
    pub(super) fn read(
        config: &TlsConfig,
        all: Arc<dyn ClientCertVerifier>,
        digest: &mut Context,
    ) -> Result<Arc<dyn ClientCertVerifier>, Vec<TlsError>> {
        if config.trust_domains.is_empty() {
            return Ok(all);
        }
        let (mut domains, mut errors) = (BTreeMap::new(), Vec::new());
        for (name, path) in &config.trust_domains {
            match TlsFile::read(TRUST_DOMAINS, path).and_then(|file| Ok((verifier(&file)?, file))) {
                Ok((verifier, file)) => {
                    for part in [name.as_bytes(), &file.bytes] {
                        digest.update(&(part.len() as u64).to_le_bytes());
                        digest.update(part);
                    }
                    domains.insert(name.clone(), verifier);
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(CheckedClients::wrap(all, Self(domains))) } else { Err(errors) }
    }
}

fn verifier(file: &TlsFile<'_>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = roots(file, &file.certificates()?)?;
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    builder.build().map(|verifier| verifier as _).map_err(|error| file.wrong(&error.to_string()))
}

/// Returns the trust domain of a certificate's SPIFFE ID.
fn domain_of(name: &CallerName) -> Option<&str> {
    name.shown().strip_prefix("spiffe://")?.split('/').next()
}

impl ClientCheck for TrustDomains {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let name = CallerName::of_certificate(end_entity);
        let Some(domain) = name.as_ref().and_then(domain_of) else { return Ok(()) };
        let own = self.0.get(domain).ok_or(CertificateError::UnknownIssuer)?;
        own.verify_client_cert(end_entity, intermediates, now).map(drop)
    }
}
