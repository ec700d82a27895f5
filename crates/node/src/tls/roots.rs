//! The certificates of authorities in a file.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use weir_config::TlsError;

use super::files::TlsFile;
use super::key_kinds::{self, KeyUse, parsed};

/// Checks that each certificate can be trusted as an authority's.
pub(super) fn roots(
    file: &TlsFile<'_>,
    certificates: &[CertificateDer<'static>],
) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for der in certificates {
        let certificate = parsed(der).map_err(|reason| file.wrong(&reason))?;
        key_kinds::check(&certificate, KeyUse::Check).map_err(|reason| file.wrong(&reason))?;
        if !certificate.is_ca() {
            let reason = format!("has a certificate that is not of an authority: {}", certificate.subject());
            return Err(file.wrong(&reason));
        }
        roots
            .add(der.clone())
            .map_err(|error| file.wrong(&format!("has a certificate that cannot be used: {error}")))?;
    }
    Ok(Arc::new(roots))
}
