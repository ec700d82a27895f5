//! Certificates made for a test, in files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use rcgen::SanType;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

use super::scratch;

/// An authority, and the directory that its certificates are in.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
    serial: AtomicU64,
    /// The certificates between this authority and a root, in PEM: its own first. Empty for a root.
    chain: String,
}

/// A certificate and its key.
pub struct Issued {
    /// The certificate, in PEM.
    pub cert: PathBuf,
    /// File of the private key, in PEM.
    pub key: PathBuf,
    /// Serial number of the certificate.
    pub serial: u64,
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn create() -> Self {
        Self::named("weir's tests")
    }

    /// Creates an authority with this common name.
    pub fn named(name: &str) -> Self {
        let issuer = CertifiedIssuer::self_signed(authority(name), KeyPair::generate().unwrap()).unwrap();
        Self::new(issuer, String::new())
    }

    /// Creates an intermediate authority, whose certificate is valid for so many seconds and has this serial number.
    /// What it issues has its certificate behind it.
    pub fn intermediate(&self, name: &str, serial: u64, seconds: u64) -> Self {
        let mut params = authority(name);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_now() + seconds);
        params.serial_number = Some(SerialNumber::from(serial));
        let issuer = CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), &self.issuer).unwrap();
        let chain = issuer.pem() + &self.chain;
        Self::new(issuer, chain)
    }

    fn new(issuer: CertifiedIssuer<'static, KeyPair>, chain: String) -> Self {
        let dir = scratch::dir("certificates-");
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, dir, serial: AtomicU64::new(1), chain }
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
        self.write(file, params_of(names, |params| params.not_after = date_time_ymd(year, 1, 1)))
    }

    /// Issues a certificate that expires in so many seconds.
    pub fn issue_for(&self, file: &str, names: &[&str], seconds: u64) -> Issued {
        let end = date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_now() + seconds);
        self.write(file, params_of(names, |params| params.not_after = end))
    }

    fn write(&self, file: &str, mut params: CertificateParams) -> Issued {
        let serial = self.serial.fetch_add(1, Relaxed);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |end: &str| self.dir.path().join(format!("{file}.{end}"));
        let issued = Issued { cert: path("pem"), key: path("key"), serial };
        replace(&issued.cert, (certificate.pem() + &self.chain).as_bytes());
        replace(&issued.key, key.serialize_pem().as_bytes());
        issued
    }

    /// Revokes certificates by their serial numbers: writes the list that replaces the one before. It is due in a day.
    pub fn revoke(&self, serials: &[u64]) -> PathBuf {
        self.revoke_until(serials, unix_now() + 86_400)
    }

    /// The same with another time of the next list, in seconds since the Unix epoch.
    pub fn revoke_until(&self, serials: &[u64], next_update: u64) -> PathBuf {
        let begin = date_time_ymd(2000, 1, 1);
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: begin,
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: begin,
            next_update: date_time_ymd(1970, 1, 1) + Duration::from_secs(next_update),
            crl_number: SerialNumber::from(self.serial.fetch_add(1, Relaxed)),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).unwrap();
        let path = self.dir.path().join("crl.pem");
        replace(&path, list.pem().unwrap().as_bytes());
        path
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

/// A certificate that is its own authority, as `openssl req -x509` makes it, for these names; it expires at the start of
/// `year`. The directory goes with what is returned.
pub fn own_authority(names: &[&str], year: i32) -> (TempDir, Issued) {
    let dir = scratch::dir("certificates-");
    let mut params = params_of(names, |params| params.not_after = date_time_ymd(year, 1, 1));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let issued = Issued { cert: dir.path().join("own.pem"), key: dir.path().join("own.key"), serial: 0 };
    replace(&issued.cert, certificate.pem().as_bytes());
    replace(&issued.key, key.serialize_pem().as_bytes());
    (dir, issued)
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

/// The parameters of an authority's certificate.
fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // A certificate with its issuer's name would look self-signed.
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// The parameters of a certificate for DNS names, addresses and URIs.
fn params_of(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let (uris, names): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.contains("://"));
    let mut params =
        CertificateParams::new(names.into_iter().map(str::to_owned).collect::<Vec<_>>()).unwrap();
    params.subject_alt_names.extend(uris.into_iter().map(|uri| SanType::URI(uri.try_into().unwrap())));
    params.not_before = date_time_ymd(2000, 1, 1);
    change(&mut params);
    params
}

/// Replaces a file at once, as tools that renew certificates do.
pub fn replace(path: &Path, content: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(&new, path).unwrap();
}

#[allow(clippy::disallowed_methods)] // certificates are valid by the real clock
fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
