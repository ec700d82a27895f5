//! TLS of outgoing connections: loads the trusted authorities and the client certificate.
//!
//! The ring provider is named here and not installed for the process, so no other part can change it.
//! Files are read again for every connection: certificates are replaced while we run.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

pub use crate::own_authority::{CertificateUse, OwnAuthorities};
pub use crate::server_verifier::ServerVerifier;
use weir_config::{ClientFiles, Identity, TlsError, unreadable};

/// Size limit of a certificate file in bytes; a whole system's certificates take a quarter of it.
const MAX_FILE: u64 = 1 << 20;

/// Reads the files.
pub fn load(files: &ClientFiles) -> Result<Arc<ClientConfig>, TlsError> {
    client(files, true)
}

/// Reads the files. Without `check_host_name`, a server's certificate may be valid for any name.
pub(crate) fn client(files: &ClientFiles, check_host_name: bool) -> Result<Arc<ClientConfig>, TlsError> {
    let (roots, own) = match &files.ca_file {
        Some(path) => authorities(path)?,
        None => (system_authorities()?, OwnAuthorities::default()),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("ca_file", error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ServerVerifier { roots, own, provider, check_host_name }));
    let config = match &files.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { cert_file, key_file }) => {
            let certificates = certificates("cert_file", cert_file)?;
            // The library's reason is omitted: it must not show a part of the key.
            let key = PrivateKeyDer::from_pem_slice(&read("key_file", key_file)?)
                .map_err(|_| wrong("key_file", format!("{} holds no private key", shown(key_file))))?;
            builder
                .with_client_auth_cert(certificates, key)
                .map_err(|error| wrong("key_file", format!("{}: {error}", shown(key_file))))?
        }
    };
    Ok(Arc::new(config))
}

/// Reads the files to find a mistake in them: a [`TlsCheck`](weir_config::TlsCheck).
pub fn check(files: &ClientFiles) -> Result<(), TlsError> {
    load(files).map(drop)
}

fn authorities(path: &Path) -> Result<(Arc<RootCertStore>, OwnAuthorities), TlsError> {
    let (mut roots, certificates) = (RootCertStore::empty(), certificates("ca_file", path)?);
    let own = OwnAuthorities::among(&certificates);
    for certificate in certificates {
        roots.add(certificate).map_err(|error| wrong("ca_file", format!("{}: {error}", shown(path))))?;
    }
    Ok((Arc::new(roots), own))
}

/// Read once: there are hundreds, and they change with the machine only.
fn system_authorities() -> Result<Arc<RootCertStore>, TlsError> {
    static FOUND: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = FOUND.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    if roots.is_empty() {
        let reason = "this system has no certificates of authorities; name a file of those to trust";
        return Err(wrong("ca_file", reason.to_owned()));
    }
    Ok(Arc::clone(roots))
}

fn certificates(file: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(file, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong(file, format!("{} holds no certificate", shown(path)))),
        Err(error) => Err(wrong(file, format!("{}: {error}", shown(path)))),
    }
}

fn read(file: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|opened| opened.take(MAX_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        wrong(file, format!("{} cannot be read: {}", shown(path), unreadable(path, &error)))
    })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(wrong(file, format!("{} is larger than {MAX_FILE} bytes", shown(path))));
    }
    Ok(bytes)
}

fn shown(path: &Path) -> String {
    format!("{path:?}")
}

fn wrong(file: &'static str, reason: String) -> TlsError {
    TlsError { file, reason }
}
