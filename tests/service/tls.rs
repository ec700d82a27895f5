//! TLS on the ports: who is served, what a change of files does, what attackers cannot do.

mod alerts;
mod bounds;
mod clients;
mod keys;
mod long_attacks;
mod long_crowds;
mod long_rotation;
mod names;
mod reload;
mod revocation;
mod tickets;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use weir_testing::metrics;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind, Stream};
use weir_config::{
    AdminPath, ClientAuth, ClientFiles, Config, ConfigOverrides, Identity, ServerConfig, TlsConfig,
    TlsVersion, TransportKind,
};
use weir_load::client::{Client, ClientError};
use weir_load::{ClientTls, ServerAccess};
use weir_testing::SOON;
use weir_testing::certificates::{Authority, Issued};

use crate::support::server::{Server, ask, config};

const TRANSPORTS: [TransportKind; 2] = [TransportKind::Fast, TransportKind::Tonic];

/// The name in the server's certificate.
const NAME: &str = "weir.test";

/// A port with a certificate of `authority`, without client certificates.
fn tls(authority: &Authority) -> TlsConfig {
    let issued = authority.issue("server", &[NAME]);
    TlsConfig { cert_file: issued.cert, key_file: issued.key, ..TlsConfig::default() }
}

/// The same with client certificates of `authority`.
fn mutual(authority: &Authority, client_auth: ClientAuth) -> TlsConfig {
    TlsConfig { client_auth, client_ca_file: Some(authority.ca_file()), ..tls(authority) }
}

/// The same with a revocation list.
fn revoking(authority: &Authority, crl: PathBuf) -> TlsConfig {
    TlsConfig { client_crl_file: Some(crl), ..mutual(authority, ClientAuth::Required) }
}

fn serve(transport: TransportKind, tls: TlsConfig) -> Server {
    Server::ready(with_tls(transport, tls))
}

/// The metrics are open: clients with certificates give the server identity.
fn with_tls(transport: TransportKind, tls: TlsConfig) -> Config {
    let admin_open = vec![AdminPath::Metrics];
    let server = ServerConfig { transport, tls: Some(tls), admin_open, ..config().server };
    Config { server, ..config() }
}

/// A client that trusts `authority`, with a certificate or without.
fn client_files(authority: &Authority, issued: Option<&Issued>) -> Arc<rustls::ClientConfig> {
    let identity =
        issued.map(|Issued { cert, key, .. }| Identity { cert_file: cert.clone(), key_file: key.clone() });
    weir_store::tls::load(&ClientFiles { ca_file: Some(authority.ca_file()), identity }).unwrap()
}

async fn connect(
    server: &Server,
    authority: &Authority,
    issued: Option<&Issued>,
) -> Result<Client, ClientError> {
    let tls = ClientTls::new(&client_files(authority, issued), NAME).unwrap();
    let access = ServerAccess { tls: Some(tls), token: None };
    Client::connect_with(&format!("https://{}", server.grpc), &access, SOON).await
}

/// True if a call of a new connection is answered.
async fn is_served(server: &Server, authority: &Authority, issued: Option<&Issued>) -> bool {
    call_anew(server, authority, issued).await.is_ok()
}

/// Connects and makes a call.
async fn call_anew(
    server: &Server,
    authority: &Authority,
    issued: Option<&Issued>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut client = connect(server, authority, issued).await?;
    client.should_allow(ask("burst/x", "a")).await?;
    Ok(())
}

/// A TLS connection without HTTP.
struct Raw {
    tls: ClientConnection,
    socket: TcpStream,
}

impl Raw {
    /// Performs the handshake, up to the server's first bytes behind it.
    fn connect(address: SocketAddr, config: Arc<rustls::ClientConfig>) -> std::io::Result<Self> {
        let tls = ClientConnection::new(config, ServerName::try_from(NAME).unwrap()).unwrap();
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(SOON))?;
        let mut raw = Self { tls, socket };
        while raw.tls.is_handshaking() {
            raw.tls.complete_io(&mut raw.socket)?;
        }
        Ok(raw)
    }

    fn kind(&self) -> Option<HandshakeKind> {
        self.tls.handshake_kind()
    }

    /// Sends bytes, and reads the first that come back: nothing if the connection ends.
    fn ask(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut stream = Stream::new(&mut self.tls, &mut self.socket);
        stream.write_all(bytes)?;
        stream.flush()?;
        stream.read(&mut [0; 64])
    }
}

/// The begin of an HTTP/2 connection: the preface and empty SETTINGS.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn metric(server: &Server, series: &str) -> f64 {
    metrics::value(&server.get("/metrics").1, series)
}

fn handshakes(server: &Server, result: &str) -> f64 {
    metric(server, &format!("weir_tls_handshakes_total{{result=\"{result}\"}}"))
}
