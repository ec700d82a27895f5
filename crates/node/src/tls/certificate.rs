//! The certificate of a port, and its key.

use std::path::Path;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use weir_config::TlsError;

use super::files::TlsFile;
use super::key_kinds::{self, KeyUse, check_signature, parsed};

pub(super) struct PortCertificate {
    pub(super) key: CertifiedKey,
    /// The earliest `notAfter` of the certificate and its intermediates, in seconds since the Unix epoch.
    pub(super) expires: i64,
}

impl PortCertificate {
    pub(super) fn read(cert_file: &Path, key_file: &Path) -> Result<Self, TlsError> {
        let file = TlsFile::read("cert_file", cert_file)?;
        let chain = file.certificates()?;
        let mut expires = i64::MAX;
        for der in &chain {
            let certificate = parsed(der).map_err(|reason| file.wrong(&reason))?;
            let checked = key_kinds::check(&certificate, KeyUse::Sign);
            checked.and_then(|()| check_signature(&certificate)).map_err(|reason| file.wrong(&reason))?;
            expires = expires.min(certificate.validity().not_after.timestamp());
        }
        let key_file = TlsFile::read("key_file", key_file)?;
        // The library's reason is omitted: it must not show a part of the key.
        let key = PrivateKeyDer::from_pem_slice(&key_file.bytes).map_err(|_| no_key(&key_file))?;
        let key = any_supported_type(&key).map_err(|_| {
            key_file.wrong("holds a key that cannot be used: it must be RSA of 2,048 to 4,096 bits, P-256, P-384 or Ed25519")
        })?;
        let key = CertifiedKey::new(chain, key);
        match key.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Self { key, expires }),
            Err(Error::InconsistentKeys(_)) => {
                Err(key_file.wrong(&format!("does not fit the certificate in {cert_file:?}")))
            }
            Err(error) => Err(file.wrong(&format!("has a certificate that cannot be used: {error}"))),
        }
    }
}

fn no_key(file: &TlsFile<'_>) -> TlsError {
    let is_encrypted = file.bytes.windows(9).any(|part| part == b"ENCRYPTED");
    file.wrong(match is_encrypted {
        true => {
            "holds an encrypted private key: write it without a password (`openssl pkey -in FILE -out NEW`)"
        }
        false => "holds no private key in PEM",
    })
}
