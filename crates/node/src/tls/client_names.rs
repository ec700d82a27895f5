//! The one name that certificates of clients must have, where one is set. It is compared as Go does: `*` as the whole first
//! label of a certificate's name stands for one label, also before a name of one label, such as `*.namespace`.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error};
use x509_parser::extensions::GeneralName;

use super::checked_clients::{CheckedClients, ClientCheck};
use super::key_kinds::parsed;

#[derive(Debug)]
pub(super) struct NamedClients(String);

impl NamedClients {
    /// Adds the name to a verifier, if there is one.
    pub(super) fn wrap(
        inner: Arc<dyn ClientCertVerifier>,
        name: Option<&str>,
    ) -> Arc<dyn ClientCertVerifier> {
        match name {
            Some(name) => CheckedClients::wrap(inner, Self(name.to_owned())),
            None => inner,
        }
    }

    fn has_name(&self, der: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = parsed(der) else { return false };
        let Ok(Some(names)) = certificate.subject_alternative_name() else { return false };
        let bare = self.0.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&self.0);
        let address = bare.parse::<IpAddr>().ok();
        names.value.general_names.iter().any(|name| match name {
            GeneralName::URI(uri) => self.0.starts_with("spiffe://") && *uri == self.0,
            GeneralName::DNSName(pattern) => address.is_none() && is_match(pattern, &self.0),
            GeneralName::IPAddress(bytes) => match address {
                Some(IpAddr::V4(address)) => **bytes == address.octets(),
                Some(IpAddr::V6(address)) => **bytes == address.octets(),
                None => false,
            },
            _ => false,
        })
    }
}

/// True if a certificate's name is that of a host.
fn is_match(pattern: &str, host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let (mut patterns, mut hosts) = (pattern.split('.'), host.split('.'));
    let first = patterns.next().unwrap_or_default();
    let label = hosts.next().unwrap_or_default();
    let is_first = !label.is_empty() && (first == "*" || first.eq_ignore_ascii_case(label));
    // A lone `*` is no wildcard.
    let is_wild = first == "*" && !pattern.contains('.');
    is_first && !is_wild && patterns.map(str::to_ascii_lowercase).eq(hosts.map(str::to_ascii_lowercase))
}

impl ClientCheck for NamedClients {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<(), Error> {
        match self.has_name(end_entity) {
            true => Ok(()),
            false => Err(CertificateError::NotValidForName.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_match;

    #[test]
    fn names_match_as_in_go() {
        for (pattern, host, expected) in [
            ("a.b", "a.b", true),
            ("A.b", "a.B.", true),
            ("*.namespace", "x.namespace", true),
            ("*.a.b", "x.a.b", true),
            ("*.a.b", "y.x.a.b", false),
            ("*.a.b", "a.b", false),
            ("x*.a.b", "xy.a.b", false),
            ("a.*", "a.b", false),
            ("*", "a", false),
            ("a", "b", false),
            ("*.a", ".a", false),
        ] {
            assert_eq!(is_match(pattern, host), expected, "{pattern} {host}");
        }
    }
}
