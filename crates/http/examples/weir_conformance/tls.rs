//! TLS with the certificates that the suite has made.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::messages::TlsCreds;

/// Returns the acceptor of a server; with `clients`, its clients must have that certificate.
pub(crate) fn acceptor(credentials: &TlsCreds, clients: &[u8]) -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(&credentials.cert).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(&credentials.key).unwrap();
    let config = ServerConfig::builder();
    let config = if clients.is_empty() {
        config.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        CertificateDer::pem_slice_iter(clients).for_each(|it| roots.add(it.unwrap()).unwrap());
        config.with_client_cert_verifier(WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap())
    };
    let mut config = config.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}
