//! TLS of connections that this node opens.

use std::path::Path;
use std::sync::Arc;

use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};
use weir_config::TlsError;
use weir_store::tls::{OwnAuthorities, ServerVerifier};

use super::certificate::PortCertificate;
use super::files::TlsFile;
use super::provider;
use super::roots::roots;

/// The files of a client.
#[derive(Debug, Clone, Copy)]
pub struct ClientTlsFiles<'p> {
    /// The authorities that are trusted; without them, those of the system.
    pub ca: Option<&'p Path>,
    /// The client's own certificate and its key.
    pub identity: Option<(&'p Path, &'p Path)>,
}

/// Reads the files.
pub fn client_config(files: &ClientTlsFiles<'_>) -> Result<ClientConfig, TlsError> {
    let (roots, own) = match files.ca {
        Some(path) => {
            let file = TlsFile::read("ca_file", path)?;
            let certificates = file.certificates()?;
            (roots(&file, &certificates)?, OwnAuthorities::among(&certificates))
        }
        None => (Arc::new(of_the_system()?), OwnAuthorities::default()),
    };
    let verifier = ServerVerifier { roots, own, provider: provider(), check_host_name: true };
    let wrong = |reason: String| TlsError { file: "ca_file", reason };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(match files.identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let certificate = PortCertificate::read(cert, key)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certificate.key)))
        }
    })
}

fn of_the_system() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    match roots.is_empty() {
        true => Err(TlsError {
            file: "ca_file",
            reason: "is not given, and the system has no certificates of authorities".to_owned(),
        }),
        false => Ok(roots),
    }
}
