//! Certificate revocation lists.

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject as _;
use weir_config::TlsError;
use x509_parser::parse_x509_crl;

use super::files::TlsFile;

/// Upper bound of lists in a file: one for each authority that anybody trusts.
const MAX_LISTS: usize = 1000;

#[derive(Default)]
pub(super) struct RevocationLists {
    pub(super) lists: Vec<RevocationList>,
}

pub(super) struct RevocationList {
    pub(super) der: CertificateRevocationListDer<'static>,
    /// The issuer's name in DER.
    issuer: Vec<u8>,
    /// Seconds since the Unix epoch.
    next_update: Option<i64>,
}

impl RevocationLists {
    /// Parses a file: PEM, or DER one after the other.
    pub(super) fn parse(file: &TlsFile<'_>) -> Result<Self, TlsError> {
        let found = match file.bytes.windows(10).any(|part| part == b"-----BEGIN") {
            true => CertificateRevocationListDer::pem_slice_iter(&file.bytes)
                .take(MAX_LISTS + 1)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| file.wrong(&format!("is not PEM: {error}")))?,
            false => split(file)?,
        };
        if found.is_empty() {
            return Err(file.wrong("holds no certificate revocation list"));
        }
        if found.len() > MAX_LISTS {
            return Err(file.wrong(&format!("holds more than {MAX_LISTS} certificate revocation lists")));
        }
        let lists = found.into_iter().enumerate().map(|(index, der)| RevocationList::parse(file, index, der));
        Ok(Self { lists: lists.collect::<Result<_, _>>()? })
    }

    pub(super) fn next_update(&self) -> Option<i64> {
        self.lists.iter().filter_map(|list| list.next_update).min()
    }

    pub(super) fn has_list_of(&self, authority: &[u8]) -> bool {
        self.lists.iter().any(|list| list.issuer == authority)
    }
}

impl RevocationList {
    fn parse(
        file: &TlsFile<'_>,
        index: usize,
        der: CertificateRevocationListDer<'static>,
    ) -> Result<Self, TlsError> {
        let (issuer, next_update) = match parse_x509_crl(&der) {
            Ok((_, list)) => {
                (list.issuer().as_raw().to_vec(), list.next_update().map(|time| time.timestamp()))
            }
            Err(error) => {
                return Err(
                    file.wrong(&format!("has a list (number {}) that cannot be parsed: {error}", index + 1))
                );
            }
        };
        Ok(Self { der, issuer, next_update })
    }
}

fn split(file: &TlsFile<'_>) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut found = Vec::new();
    let mut rest: &[u8] = &file.bytes;
    while !rest.is_empty() && found.len() <= MAX_LISTS {
        let Ok((behind, _)) = parse_x509_crl(rest) else {
            return Err(file.wrong("is neither PEM nor certificate revocation lists in DER"));
        };
        let list = rest.get(..rest.len() - behind.len()).unwrap_or_default();
        found.push(CertificateRevocationListDer::from(list.to_vec()));
        rest = behind;
    }
    Ok(found)
}
