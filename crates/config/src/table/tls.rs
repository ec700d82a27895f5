//! The form of TLS settings of a port: `server.tls`, `server.admin_tls`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::tls_words::{ClientAuth, CrlDepth, CrlExpired, CrlUnknown, TlsVersion};
use super::kinds::{FilePath, Optional, Words};
use super::texts::Name;
use super::value_kind::ValueKind;
use super::{Entry, Setting, section};

/// Returns the row of a section in this form.
pub(super) fn tls(key: &'static str, about: &'static str) -> Setting {
    Setting { unset: "none", ..Setting::other(key, about, ValueKind::Defined("server_tls")) }
}

/// Returns the row of a file that the section requires.
fn required(key: &'static str, about: &'static str, more: &'static str) -> Setting {
    Setting { required: true, ..Entry::new(key, None, FILE).about(about).more(more).row() }
}

/// The kind of a required file.
pub(crate) const FILE: Optional<FilePath> = Optional(FilePath, "needed");

fn client_crl() -> Setting {
    let about = "Use of certificate revocation lists.";
    Setting::other("client_crl", about, ValueKind::Section(CrlConfig::rows))
}

section! {
    /// TLS of one port: the certificate of the server, and what clients must show.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TlsConfig {
        before: [
            required(
                "cert_file",
                "The certificate of the server, in PEM, followed by its intermediates.",
                "Weir reads all files of this section again when they change. Certificate and key change together: while \
                 they do not fit each other, the old ones stay.",
            ),
            required(
                "key_file",
                "The private key of that certificate, in PEM: PKCS#8, PKCS#1 or SEC1.",
                "RSA of 2,048 to 4,096 bits, P-256, P-384 or Ed25519.",
            ),
        ],

        /// The certificate authorities that client certificates must come from, in PEM.
        pub client_ca_file: Option<PathBuf> = None => {
            kind: Optional(FilePath, "none"),
            more: "Only these are trusted, never those of the system. It needs `client_auth`.",
        }
        /// Client certificates: none, optional or required.
        pub client_auth: ClientAuth = ClientAuth::None => {
            kind: Words(&[
                ("none", ClientAuth::None),
                ("optional", ClientAuth::Optional),
                ("required", ClientAuth::Required),
            ]),
            more: "`none` does not ask for one. `optional` lets clients connect without one, but none whose certificate is not \
                   valid; calls without a certificate need a token, or a rule for `anonymous`. A connection ends when its \
                   client's certificate expires.",
        }
        /// The name that every client certificate must have: of a host, an IP address, or `spiffe://…`.
        pub client_san: Option<String> = None => {
            kind: Optional(Name(2048), "none"),
            more: "It needs `client_ca_file`. `*` as the first label of a certificate's name stands for one label. With \
                   `authorize`, rules can name callers one by one instead.",
        }
        /// Certificate revocation lists, in PEM or DER.
        pub client_crl_file: Option<PathBuf> = None => {
            kind: Optional(FilePath, "none"),
            more: "One or more. Delta and indirect lists are refused.",
        }
        /// The oldest version of TLS.
        pub min_version: TlsVersion = TlsVersion::V12 => {
            kind: Words(&[("1.2", TlsVersion::V12), ("1.3", TlsVersion::V13)]),
        }

        after: [client_crl()],
        others: {
            /// The certificate of the server and its intermediates.
            pub cert_file: PathBuf = PathBuf::new(),
            /// The private key of the certificate.
            pub key_file: PathBuf = PathBuf::new(),
            /// Use of certificate revocation lists.
            pub client_crl: CrlConfig = CrlConfig::default(),
            /// The authorities of SPIFFE trust domains: those of `server.identity`, for all ports.
            pub trust_domains: BTreeMap<String, PathBuf> = BTreeMap::new(),
        }
    }
}

section! {
    /// Use of certificate revocation lists.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CrlConfig {
        before: [],

        /// Which certificates of a client's chain are checked.
        pub depth: CrlDepth = CrlDepth::Leaf => {
            kind: Words(&[("leaf", CrlDepth::Leaf), ("chain", CrlDepth::Chain)]),
            more: "`chain` needs a list of each authority, intermediate ones included.",
        }
        /// Treatment of a certificate whose authority has no list.
        pub unknown: CrlUnknown = CrlUnknown::Refuse => {
            kind: Words(&[("refuse", CrlUnknown::Refuse), ("allow", CrlUnknown::Allow)]),
            more: "At the start, Weir names the authorities of `client_ca_file` that have none.",
        }
        /// Treatment of a list that is older than its `nextUpdate`.
        pub expired: CrlExpired = CrlExpired::Warn => {
            kind: Words(&[("refuse", CrlExpired::Refuse), ("warn", CrlExpired::Warn)]),
            more: "`warn`: it still decides, and Weir logs a warning. `refuse`: clients whose authority has only expired \
                   lists are refused.",
        }

        after: [],
        others: {}
    }
}
