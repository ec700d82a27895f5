//! Verification of client certificates: authorities and revocation lists.

use std::sync::Arc;

use ring::digest::{Context, SHA256};
use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertRevocationListError, RootCertStore};
use weir_config::{ClientAuth, CrlDepth, CrlExpired, CrlUnknown, TlsConfig, TlsError};
use weir_store::tls::OwnAuthorities;
use weir_time::clock::Clock;

use super::checked_clients::CheckedClients;
use super::client_names::NamedClients;
use super::crl::{RevocationList, RevocationLists};
use super::files::TlsFile;
use super::key_kinds::parsed;
use super::provider;
use super::roots::roots;
use super::trust_domains::TrustDomains;

/// The verifier of client certificates, and what it was made of.
pub(super) struct Authorities {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    /// Digest of both files: tells a change of these from a change of the server's certificate.
    pub(super) digest: [u8; 32],
    /// The earliest `nextUpdate` of the lists, in seconds since the Unix epoch.
    pub(super) next_update: Option<i64>,
    /// Things that an operator should know.
    pub(super) warnings: Vec<String>,
}

impl Authorities {
    /// Reads `client_ca_file` and `client_crl_file`; nothing if clients are not asked for a certificate.
    pub(super) fn read(config: &TlsConfig, clock: &Clock) -> Result<Option<Self>, Vec<TlsError>> {
        let Some(path) = config.client_ca_file.as_deref().filter(|_| config.client_auth != ClientAuth::None)
        else {
            return Ok(None);
        };
        let lists_file = config.client_crl_file.as_deref().map(|path| TlsFile::read("client_crl_file", path));
        let lists = match &lists_file {
            Some(Ok(file)) => Some(RevocationLists::parse(file)),
            Some(Err(error)) => Some(Err(error.clone())),
            None => None,
        };
        let file = TlsFile::read("client_ca_file", path).map_err(|error| both(error, &lists))?;
        let certificates = file.certificates().map_err(|error| both(error, &lists))?;
        let roots = roots(&file, &certificates).map_err(|error| both(error, &lists))?;
        let lists = lists.transpose().map_err(|error| vec![error])?;
        let lists = lists.unwrap_or_default();
        let lists_file = lists_file.and_then(Result::ok);
        if let Some(file) = &lists_file {
            check_lists(file, &roots, &lists).map_err(|error| vec![error])?;
        }
        let verifier =
            verifier(config, &roots, &lists).map_err(|error| vec![file.wrong(&error.to_string())])?;
        let warnings = match lists_file.is_some() {
            true => warnings(config, &certificates, &lists, clock),
            false => Vec::new(),
        };
        // Of a certificate that is its own authority no list can say that it is revoked.
        let own = OwnAuthorities::among(&certificates);
        let verifier = match own.is_empty() || lists_file.is_some() {
            true => verifier,
            false => CheckedClients::wrap(verifier, own),
        };
        let mut digest = Context::new(&SHA256);
        let verifier = TrustDomains::read(config, verifier, &mut digest)?;
        let verifier = NamedClients::wrap(verifier, config.client_san.as_deref());
        digest.update(&(file.bytes.len() as u64).to_le_bytes());
        digest.update(&file.bytes);
        digest.update(lists_file.as_ref().map_or(&[], |file| &file.bytes));
        let digest = digest.finish().as_ref().try_into().unwrap_or_default();
        Ok(Some(Self { verifier, digest, next_update: lists.next_update(), warnings }))
    }
}

/// Adds the mistake of the lists, so that both are reported in one run.
fn both(error: TlsError, lists: &Option<Result<RevocationLists, TlsError>>) -> Vec<TlsError> {
    let of_lists = lists.as_ref().and_then(|lists| lists.as_ref().err().cloned());
    [error].into_iter().chain(of_lists).collect()
}

/// Tries each list on its own, because the library does not tell which one it refuses.
fn check_lists(
    file: &TlsFile<'_>,
    roots: &Arc<RootCertStore>,
    lists: &RevocationLists,
) -> Result<(), TlsError> {
    for (index, list) in lists.lists.iter().enumerate() {
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider());
        let Err(error) = builder.with_crls([list.der.clone()]).build() else { continue };
        let reason = match error {
            VerifierBuilderError::InvalidCrl(CertRevocationListError::UnsupportedDeltaCrl) => {
                "is a delta list: give the complete one".to_owned()
            }
            VerifierBuilderError::InvalidCrl(CertRevocationListError::UnsupportedIndirectCrl) => {
                "is an indirect list: give one that the authority itself has issued".to_owned()
            }
            error => format!("cannot be used: {error}"),
        };
        return Err(file.wrong(&format!("has a list (number {}) that {reason}", index + 1)));
    }
    Ok(())
}

fn verifier(
    config: &TlsConfig,
    roots: &Arc<RootCertStore>,
    lists: &RevocationLists,
) -> Result<Arc<dyn ClientCertVerifier>, VerifierBuilderError> {
    let ders = lists.lists.iter().map(|RevocationList { der, .. }| der.clone());
    let mut builder =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider()).with_crls(ders);
    if config.client_auth == ClientAuth::Optional {
        builder = builder.allow_unauthenticated();
    }
    if config.client_crl.depth == CrlDepth::Leaf {
        builder = builder.only_check_end_entity_revocation();
    }
    if config.client_crl.unknown == CrlUnknown::Allow {
        builder = builder.allow_unknown_revocation_status();
    }
    if config.client_crl.expired == CrlExpired::Refuse {
        builder = builder.enforce_revocation_expiration();
    }
    builder.build()
}

/// Names authorities without a list, and lists that have expired.
fn warnings(
    config: &TlsConfig,
    certificates: &[CertificateDer<'static>],
    lists: &RevocationLists,
    clock: &Clock,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let refused = match config.client_crl.unknown {
        CrlUnknown::Refuse => "clients with certificates of it are refused",
        CrlUnknown::Allow => "certificates of it are not checked for revocation",
    };
    for der in certificates {
        let Ok(authority) = parsed(der) else { continue };
        if !lists.has_list_of(authority.subject().as_raw()) {
            warnings.push(format!("the authority {} has no revocation list: {refused}", authority.subject()));
        }
    }
    let now = (clock.now().0 / 1_000_000).try_into().unwrap_or(i64::MAX);
    if lists.next_update().is_some_and(|next| next <= now) {
        warnings.push("a certificate revocation list is older than its nextUpdate".to_owned());
    }
    warnings
}
