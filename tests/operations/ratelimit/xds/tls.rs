//! TLS to a control plane as Envoy Gateway has it: version 1.3, a client certificate of its authority, and ALPN.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::{Ads, config, leaf, start};
use crate::support::certificates::Authority;
use crate::support::clients::root;
use crate::support::{SOON, eventually, scratch};

/// The files of a server, read for each handshake; and handshakes that failed.
#[derive(Clone)]
pub(in crate::ratelimit) struct ServerFiles {
    files: Arc<Mutex<[PathBuf; 3]>>,
    failed: Arc<Mutex<Vec<String>>>,
}

impl ServerFiles {
    /// Those that Envoy Gateway makes.
    pub(in crate::ratelimit) fn of_envoy_gateway() -> Self {
        let files = ["gateway-ca.pem", "gateway-server.pem", "gateway-server.key"].map(made);
        Self { files: Arc::new(Mutex::new(files)), failed: Arc::default() }
    }

    fn config(&self) -> ServerConfig {
        let [ca, cert, key] = self.files.lock().clone();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
        let chain = vec![CertificateDer::from_pem_file(cert).unwrap()];
        let key = PrivateKeyDer::from_pem_file(key).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }

    async fn handshake(&self, socket: TcpStream) -> Result<Encrypted, String> {
        let acceptor = TlsAcceptor::from(Arc::new(self.config()));
        let stream = acceptor.accept(socket).await.map_err(|error| error.to_string())?;
        match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Ok(Encrypted(stream)),
            // As Go's servers do.
            other => Err(format!("ALPN is {other:?}")),
        }
    }

    pub(in crate::ratelimit) fn serve(&self) -> Ads {
        self.serve_at("127.0.0.1:0".parse().unwrap())
    }

    fn serve_at(&self, address: std::net::SocketAddr) -> Ads {
        let files = self.clone();
        Ads::start_with(address, move |listener: TcpListener| {
            let (sender, receiver) = mpsc::channel::<io::Result<Encrypted>>(1);
            tokio::spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    match files.handshake(socket).await {
                        Ok(stream) => drop(sender.send(Ok(stream)).await),
                        Err(reason) => files.failed.lock().push(reason),
                    }
                }
            });
            ReceiverStream::new(receiver)
        })
    }
}

struct Encrypted(TlsStream<TcpStream>);

impl Connected for Encrypted {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// The variables of the files in `folder`, which are named as in Envoy Gateway's secret.
pub(in crate::ratelimit) fn variables(folder: &Path) -> [(&'static str, String); 6] {
    let path = |name: &str| folder.join(name).display().to_string();
    [
        ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true".to_owned()),
        ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", path("tls.crt")),
        ("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", path("tls.key")),
        ("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", path("ca.crt")),
        ("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "envoy-gateway".to_owned()),
        ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true".to_owned()),
    ]
}

pub(in crate::ratelimit) fn copy(folder: &Path, files: [&Path; 3]) {
    for (name, file) in ["ca.crt", "tls.crt", "tls.key"].into_iter().zip(files) {
        fs::copy(file, folder.join(name)).unwrap();
    }
}

/// A file of those that Envoy Gateway makes.
fn made(name: &str) -> PathBuf {
    root().join("tests/certificates").join(name)
}

/// Copies what Envoy Gateway's secret has.
pub(in crate::ratelimit) fn copy_secret(folder: &Path) {
    copy(folder, [&made("gateway-ca.pem"), &made("gateway-ratelimit.pem"), &made("gateway-ratelimit.key")]);
}

/// The certificates of Envoy Gateway first, then those of another authority: all three files change.
#[test]
fn certificates_are_read_for_each_connection() {
    let server = ServerFiles::of_envoy_gateway();
    let folder = scratch::dir("xds-tls-");
    copy_secret(folder.path());
    let ads = server.serve();
    ads.set("1", &[config("d", vec![leaf("k", "v", 2)])]);
    let variables = variables(folder.path());
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
    let started = start(&ads.address.to_string(), &variables);
    ads.accepted("1");
    assert_eq!(started.json("d", &[("k", "v")]), "OK 2/DAY");

    let next = Authority::named("next");
    let (own, theirs) =
        (next.issue("client", &["x.envoy-gateway-system"]), next.issue("server", &["envoy-gateway"]));
    *server.files.lock() = [next.ca_file(), theirs.cert, theirs.key];
    let address = ads.address;
    drop(ads);
    let ads = server.serve_at(address);
    ads.set("1", &[config("d", vec![leaf("k", "v", 8)])]);
    eventually(SOON, "the old files are refused", || !server.failed.lock().is_empty());
    assert_eq!(started.json("d", &[("k", "v")]), "OK 2/DAY", "the last set goes on");
    copy(folder.path(), [&next.ca_file(), &own.cert, &own.key]);
    ads.accepted("1");
    assert_eq!(started.json("d", &[("k", "v")]), "OK 8/DAY");
    let (code, log) = started.stop();
    assert_eq!(code, Some(0), "{log}");
}

/// A certificate of another authority, or for another name: nothing is taken from it, and the log has the reason once.
#[test]
fn a_server_that_is_not_the_expected_one_is_not_asked() {
    let (trusted, other) = (Authority::named("trusted"), Authority::named("other"));
    let own = trusted.issue("client", &["client"]);
    for (issuer, name, reason) in [
        (&other, "envoy-gateway", "invalid peer certificate: UnknownIssuer"),
        (&trusted, "another-name", "not valid for name"),
    ] {
        let theirs = issuer.issue("server", &[name]);
        let files = [trusted.ca_file(), theirs.cert, theirs.key];
        let server = ServerFiles { files: Arc::new(Mutex::new(files)), failed: Arc::default() };
        let folder = scratch::dir("xds-tls-");
        copy(folder.path(), [&trusted.ca_file(), &own.cert, &own.key]);
        let ads = server.serve();
        let variables = variables(folder.path());
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        let started = start(&ads.address.to_string(), &variables);
        eventually(SOON, "it tries again", || server.failed.lock().len() >= 3);
        assert!(ads.requests().is_empty());
        let (_, log) = started.stop();
        assert_eq!(log.matches(reason).count(), 1, "{log}");
    }
}
