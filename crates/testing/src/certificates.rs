//! Certificates made for a test, in files.

use std::path::PathBuf;

pub use rcgen::SanType;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::scratch;

/// An authority, and the directory that its certificates are in.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
}

/// A certificate and its key.
pub struct Issued {
    /// The certificate, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn create() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // A certificate with its issuer's name would look self-signed.
        params.distinguished_name.push(DnType::CommonName, "weir's tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = scratch::dir("certificates-");
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, dir }
    }

    /// Returns the path of the authority's own certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// Issues a certificate for these names, in files named after `file`.
    pub fn issue(&self, file: &str, names: &[&str]) -> Issued {
        self.issue_until(file, names, 2096)
    }

    /// Issues a certificate that expires at the start of `year`.
    pub fn issue_until(&self, file: &str, names: &[&str], year: i32) -> Issued {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |end: &str| self.dir.path().join(format!("{file}.{end}"));
        let issued = Issued { cert: path("pem"), key: path("key") };
        std::fs::write(&issued.cert, certificate.pem()).unwrap();
        std::fs::write(&issued.key, key.serialize_pem()).unwrap();
        issued
    }

    /// Returns the arguments of a `redis-server` with TLS on `port`. `clients`: mutual TLS, so clients need a
    /// certificate, too.
    pub fn redis_args(&self, port: u16, issued: &Issued, clients: bool) -> Vec<String> {
        let path = |path: &PathBuf| path.display().to_string();
        [
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", path(&issued.cert)),
            ("--tls-key-file", path(&issued.key)),
            ("--tls-ca-cert-file", path(&self.ca_file())),
            ("--tls-auth-clients", if clients { "yes" } else { "no" }.to_owned()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }
}

/// A certificate in DER, signed by itself, with these alternative names and this common name.
pub fn certificate_with(common_name: &str, names: Vec<SanType>) -> Vec<u8> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.subject_alt_names = names;
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

/// An alternative name that is a URI.
pub fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

/// An alternative name that is a DNS name.
pub fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

/// An alternative name that is an e-mail address.
pub fn email(text: &str) -> SanType {
    SanType::Rfc822Name(text.try_into().unwrap())
}
