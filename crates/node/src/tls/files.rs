//! Reads files of certificates, keys and revocation lists. Errors name the setting and the file, and show nothing of a key.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use weir_config::{TlsError, unreadable};

/// Size limit of a file in bytes. A revocation list of this size has about 400,000 entries.
const MAX_FILE: u64 = 16 << 20;

pub(super) struct TlsFile<'p> {
    setting: &'static str,
    path: &'p Path,
    pub(super) bytes: Vec<u8>,
}

impl<'p> TlsFile<'p> {
    pub(super) fn read(setting: &'static str, path: &'p Path) -> Result<Self, TlsError> {
        let mut file = Self { setting, path, bytes: Vec::new() };
        // Reading one byte more than allowed detects a file that is too large, even an endless one.
        let read = File::open(path).and_then(|opened| opened.take(MAX_FILE + 1).read_to_end(&mut file.bytes));
        if let Err(error) = read {
            return Err(file.wrong(&format!("cannot be read: {}", unreadable(path, &error))));
        }
        if file.bytes.len() as u64 > MAX_FILE {
            return Err(file.wrong(&format!("is larger than {MAX_FILE} bytes")));
        }
        Ok(file)
    }

    /// Parses it as certificates in PEM, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        match found {
            Ok(found) if !found.is_empty() => Ok(found),
            Ok(_) => Err(self.wrong("holds no certificate in PEM")),
            Err(error) => Err(self.wrong(&format!("is not PEM: {error}"))),
        }
    }

    /// Returns a mistake of the file. `reason` continues a sentence that its path begins.
    pub(super) fn wrong(&self, reason: &str) -> TlsError {
        TlsError { file: self.setting, reason: format!("{:?} {reason}", self.path) }
    }
}
