//! The bytes between client and server of a case: a pipe in memory, as it is or with TLS in it, as servers have it.

use std::sync::{Arc, LazyLock};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// More than any case sends or is sent.
const PIPE: usize = 16 << 20;

/// The name in the server's certificate.
const NAME: &str = "weir.test";

/// The transport of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Plain,
    Tls,
}

/// A stream of bytes.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// One end of a link.
pub(crate) type End = Box<dyn Bytes>;

/// The configurations of both sides, and of TLS alone.
static TLS: LazyLock<(Arc<ClientConfig>, Arc<ServerConfig>)> = LazyLock::new(|| {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let server = server.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let server = server.with_single_cert(vec![cert.der().clone()], key.into()).expect("it fits");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a root");
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().expect("versions");
    let client = client.with_root_certificates(roots).with_no_client_auth();
    (Arc::new(client), Arc::new(server))
});

impl Link {
    /// Both ends: the client's, and the server's. A handshake is over.
    pub(crate) async fn ends(self) -> (End, End) {
        let (ours, theirs) = duplex(PIPE);
        if self == Self::Plain {
            return (Box::new(ours), Box::new(theirs));
        }
        let (client, server) = &*TLS;
        let name = ServerName::try_from(NAME).expect("a name");
        let connector = TlsConnector::from(Arc::clone(client));
        let acceptor = TlsAcceptor::from(Arc::clone(server));
        let (ours, theirs) = tokio::join!(connector.connect(name, ours), acceptor.accept(theirs));
        (Box::new(ours.expect("a handshake")), Box::new(theirs.expect("a handshake")))
    }
}
