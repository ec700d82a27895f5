//! All files of a port, read as one generation.

use weir_config::{TlsConfig, TlsError};
use weir_time::clock::Clock;

use super::authorities::Authorities;
use super::certificate::PortCertificate;

/// The contents of the files of a port, which fit together.
pub(super) struct LoadedFiles {
    pub(super) certificate: PortCertificate,
    pub(super) authorities: Option<Authorities>,
}

impl LoadedFiles {
    /// Reads the files, or returns every mistake in them.
    pub(super) fn read(config: &TlsConfig, clock: &Clock) -> Result<Self, Vec<TlsError>> {
        let certificate = PortCertificate::read(&config.cert_file, &config.key_file);
        let authorities = Authorities::read(config, clock);
        match (certificate, authorities) {
            (Ok(certificate), Ok(authorities)) => Ok(Self { certificate, authorities }),
            (certificate, authorities) => {
                let errors = certificate.err().into_iter();
                Err(errors.chain(authorities.err().unwrap_or_default()).collect())
            }
        }
    }
}
