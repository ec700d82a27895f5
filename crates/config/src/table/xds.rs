//! The table's sections `envoy.xds` and `envoy.xds.tls`: Envoy's domains from a control plane.

use std::path::PathBuf;

use weir_units::Micros;

use super::super::Secret;
use super::super::xds_tls_names::XdsTlsNames;
use super::kinds::{Boolean, FilePath, Optional};
use super::numbers::{ByteSize, Span};
use super::texts::{Name, Password};
use super::value_kind::ValueKind;
use super::{Applies, Entry, Outside, Setting, section};

/// The longest text about a node, in bytes.
const MAX_TEXT: usize = 4096;

/// The kind of the server's address.
pub(crate) const SERVER: Optional<Name> = Optional(Name(512), "needed");

/// Returns the row of the section in `envoy`.
pub(super) fn xds() -> Setting {
    let about = "A control plane that sends the domains, in place of `config`.";
    Setting { unset: "none", ..Setting::other("xds", about, ValueKind::Defined("envoy_xds")) }
}

fn server() -> Setting {
    let entry = Entry {
        key: "server",
        about: "The address of the control plane, HOST:PORT.",
        default: None,
        kind: SERVER,
        outside: Outside::No,
        applies: Applies::AtRestart,
        more: "It serves `AggregatedDiscoveryService` and the type `RateLimitConfig`, as Envoy Gateway does. `dns:///` in front \
               of it is allowed.",
    };
    Setting { required: true, ..entry.row() }
}

fn tls() -> Setting {
    let about = "TLS of the connection; without it, it is plain text.";
    Setting { unset: "none", ..Setting::other("tls", about, ValueKind::Section(XdsTlsConfig::rows)) }
}

section! {
    /// A control plane that sends Envoy's domains.
    #[derive(Debug, Clone, PartialEq)]
    pub struct XdsConfig {
        before: [server()],

        /// The name by which the control plane chooses what to send.
        pub node_id: String = "weir".to_owned() => {
            kind: Name(MAX_TEXT),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// What else the node says of itself: `KEY=VALUE,KEY=VALUE`.
        pub node_metadata: Option<String> = None => {
            kind: Optional(Name(MAX_TEXT), "none"),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// Headers of the call: `NAME:VALUE,NAME:VALUE`.
        pub call_headers: Option<Secret> = None => {
            kind: Optional(Password, "none"),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "They are never shown.",
        }
        /// The largest message with all domains.
        pub max_message_bytes: usize = 64 << 20 => {
            kind: ByteSize(1_usize << 10, 1 << 30),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// The time before the first attempt to connect again.
        pub min_backoff: Micros = Micros::from_secs(1) => {
            kind: Span(Micros::from_millis(10), Micros::from_secs(3600)),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "It doubles with each attempt that fails, and is random by a half.",
        }
        /// The longest time between attempts to connect.
        pub max_backoff: Micros = Micros::from_secs(30) => {
            kind: Span(Micros::from_millis(10), Micros::from_secs(3600)),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// Whether no port is opened before the first configuration has arrived.
        pub wait_for_first: bool = false => {
            kind: Boolean,
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "Otherwise requests get `FAILED_PRECONDITION` until then. A first configuration with mistakes counts too.",
        }

        after: [tls()],
        others: {
            /// Its address.
            pub server: String = String::new(),
            /// TLS of the connection.
            pub tls: Option<XdsTlsConfig> = None,
        }
    }
}

section! {
    /// TLS of the connection to a control plane. All files are read again for each connection.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct XdsTlsConfig {
        before: [],

        /// The certificate authorities that the server's certificate must come from, in PEM.
        pub ca_file: Option<PathBuf> = None => {
            kind: Optional(FilePath, "system"),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "Only these are trusted.",
        }
        /// The certificate of this client, in PEM.
        pub cert_file: Option<PathBuf> = None => {
            kind: Optional(FilePath, "none"),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "It needs `key_file`. All files are read again for each connection.",
        }
        /// The private key of that certificate, in PEM.
        pub key_file: Option<PathBuf> = None => {
            kind: Optional(FilePath, "none"),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }
        /// The name that the server's certificate must have.
        pub server_name: Option<String> = None => {
            kind: Optional(Name(255), "the host of `server`"),
            outside: Outside::No,
            applies: Applies::AtRestart,
            more: "",
        }

        after: [],
        others: {
            /// How mistakes of these settings name them.
            pub names: XdsTlsNames = XdsTlsNames::default(),
        }
    }
}
