//! Certificates that are their own authority: what `openssl req -x509` makes, CA:TRUE and a server's or client's at once.
//!
//! The library refuses an authority as an end entity. Where exactly this certificate is among the trusted ones, nobody has to
//! vouch for it, and only what it says of itself is left to check: its time, and what its key is for.

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, Error};
use x509_parser::parse_x509_certificate;
use x509_parser::prelude::X509Certificate;

/// The side that presents a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateUse {
    /// A server.
    Server,
    /// A client.
    Client,
}

/// The trusted certificates that are their own authority.
#[derive(Debug, Clone, Default)]
pub struct OwnAuthorities(Vec<CertificateDer<'static>>);

impl OwnAuthorities {
    /// Keeps those of the trusted certificates that are their own authority.
    pub fn among(trusted: &[CertificateDer<'static>]) -> Self {
        let is_own = |der: &&CertificateDer<'static>| {
            parsed(der).is_some_and(|one| one.is_ca() && one.subject().as_raw() == one.issuer().as_raw())
        };
        Self(trusted.iter().filter(is_own).cloned().collect())
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a certificate that is one of them, apart from its names; `None` if it is not.
    pub fn check(
        &self,
        presented: &CertificateDer<'_>,
        side: CertificateUse,
        now: UnixTime,
    ) -> Option<Result<(), Error>> {
        let known = self.0.iter().find(|known| known.as_ref() == presented.as_ref())?;
        Some(
            parsed(known)
                .map_or(Err(CertificateError::BadEncoding), |one| fits(&one, side, now))
                .map_err(Error::from),
        )
    }
}

fn parsed<'d>(der: &'d CertificateDer<'_>) -> Option<X509Certificate<'d>> {
    parse_x509_certificate(der).ok().map(|(_, certificate)| certificate)
}

fn fits(
    certificate: &X509Certificate<'_>,
    side: CertificateUse,
    now: UnixTime,
) -> Result<(), CertificateError> {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < certificate.validity().not_before.timestamp() {
        return Err(CertificateError::NotValidYet);
    }
    if now > certificate.validity().not_after.timestamp() {
        return Err(CertificateError::Expired);
    }
    match certificate.extended_key_usage() {
        Ok(None) => Ok(()),
        Ok(Some(uses)) => {
            let of_side = match side {
                CertificateUse::Server => uses.value.server_auth,
                CertificateUse::Client => uses.value.client_auth,
            };
            if of_side || uses.value.any { Ok(()) } else { Err(CertificateError::InvalidPurpose) }
        }
        Err(_) => Err(CertificateError::BadEncoding),
    }
}
