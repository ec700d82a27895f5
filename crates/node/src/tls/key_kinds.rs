//! The kinds of keys and certificates that are served or trusted, and what to make instead of others.

use std::fmt;

use rustls::pki_types::CertificateDer;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_PKCS1_RSAENCRYPTION,
    OID_PKCS1_SHA1WITHRSA, OID_SIG_ED25519,
};
use x509_parser::parse_x509_certificate;
use x509_parser::prelude::{X509Certificate, X509Version};
use x509_parser::public_key::PublicKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Rsa(usize),
    P256,
    P384,
    P521,
    Ed25519,
    Other,
}

/// Key usage. Signatures of larger RSA keys can be checked, but not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyUse {
    Sign,
    Check,
}

/// RFC 3279, 2.2.3.
const ECDSA_WITH_SHA1: &str = "1.2.840.10045.4.1";

/// Instructions to make a key that any client understands.
const MAKE_KEY: &str = "make one of P-256 (`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`), P-384, \
                        Ed25519, or RSA of 2,048 to 4,096 bits";

/// Parses a certificate; the error continues a sentence about its file.
pub(super) fn parsed<'d>(der: &'d CertificateDer<'_>) -> Result<X509Certificate<'d>, String> {
    match parse_x509_certificate(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err("has a certificate with bytes behind its end".to_owned()),
        Err(error) => Err(format!("has a certificate that cannot be parsed: {error}")),
    }
}

/// Checks version and key of a certificate; the error continues a sentence about its file.
pub(super) fn check(certificate: &X509Certificate<'_>, key_use: KeyUse) -> Result<(), String> {
    if certificate.version() != X509Version::V3 {
        return Err(
            "has a certificate of X.509 version 1: issue it again as version 3, with subject alternative \
                    names (`openssl x509 -req -extfile FILE`)"
                .to_owned(),
        );
    }
    let kind = KeyKind::new(certificate);
    let is_good = match kind {
        KeyKind::Rsa(bits) => match key_use {
            KeyUse::Sign => (2048..=4096).contains(&bits),
            KeyUse::Check => (2048..=8192).contains(&bits),
        },
        KeyKind::P256 | KeyKind::P384 | KeyKind::Ed25519 => true,
        KeyKind::P521 | KeyKind::Other => false,
    };
    if is_good { Ok(()) } else { Err(format!("has a certificate for a key of {kind}: {MAKE_KEY}")) }
}

pub(super) fn check_signature(certificate: &X509Certificate<'_>) -> Result<(), String> {
    let algorithm = certificate.signature_algorithm.oid();
    if *algorithm == OID_PKCS1_SHA1WITHRSA || algorithm.to_id_string() == ECDSA_WITH_SHA1 {
        return Err("has a certificate that is signed with SHA-1: issue it again with SHA-256 (`openssl x509 -sha256`)"
            .to_owned());
    }
    Ok(())
}

impl KeyKind {
    fn new(certificate: &X509Certificate<'_>) -> Self {
        let key = certificate.public_key();
        let algorithm = &key.algorithm.algorithm;
        if *algorithm == OID_PKCS1_RSAENCRYPTION {
            return match key.parsed() {
                Ok(PublicKey::RSA(rsa)) => Self::Rsa(rsa.key_size()),
                _ => Self::Other,
            };
        }
        if *algorithm == OID_SIG_ED25519 {
            return Self::Ed25519;
        }
        if *algorithm != OID_KEY_TYPE_EC_PUBLIC_KEY {
            return Self::Other;
        }
        let curve = key.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
        match curve {
            Some(curve) if curve == OID_EC_P256 => Self::P256,
            Some(curve) if curve == OID_NIST_EC_P384 => Self::P384,
            Some(curve) if curve == OID_NIST_EC_P521 => Self::P521,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(bits) => write!(f, "RSA with {bits} bits"),
            Self::P256 => f.write_str("P-256"),
            Self::P384 => f.write_str("P-384"),
            Self::P521 => f.write_str("P-521"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Other => f.write_str("another kind"),
        }
    }
}
