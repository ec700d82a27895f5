//! Connections to the control plane: TCP with timeouts of the kernel, and TLS with the files as they are now.
//!
//! Servers of gRPC in Go end a connection whose client sends HTTP/2 PINGs more often than every five minutes. So a peer
//! that has gone is found by the kernel.

use std::fmt::Display;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::settings::{XdsAddress, XdsTlsConfig};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::Service;
use tonic::transport::Uri;
use weir_node::tls::{ClientTlsFiles, client_config};

/// Timeout of connecting together with the handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time that sent bytes stay unacknowledged, and silence before the kernel probes the peer.
const USER_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

/// A byte stream to the control plane.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Connects to one control plane.
#[derive(Debug, Clone)]
pub(super) struct XdsConnector {
    pub(super) address: XdsAddress,
    pub(super) tls: Option<XdsTlsConfig>,
}

impl Service<Uri> for XdsConnector {
    type Response = TokioIo<Pin<Box<dyn Wire>>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let connected = tokio::time::timeout(CONNECT_TIMEOUT, connector.connect()).await;
            let late = || {
                io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {CONNECT_TIMEOUT:?}"))
            };
            Ok(TokioIo::new(connected.unwrap_or_else(|_| Err(late()))?))
        })
    }
}

impl XdsConnector {
    async fn connect(&self) -> io::Result<Pin<Box<dyn Wire>>> {
        let socket = self.dial().await?;
        let Some(tls) = &self.tls else { return Ok(Box::pin(socket)) };
        let name = tls.server_name.as_deref().unwrap_or(&self.address.host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| io::Error::other(format!("no certificate can have the name {name:?}")))?;
        let files = ClientTlsFiles {
            ca: tls.ca_file.as_deref(),
            identity: tls.cert_file.as_deref().zip(tls.key_file.as_deref()),
        };
        let names = &tls.names;
        let wrong =
            |file: &str, reason: &dyn Display| io::Error::other(format!("{}: {reason}", names.find(file)));
        let mut config = client_config(&files).map_err(|error| wrong(error.file, &error.reason))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connected = TlsConnector::from(Arc::new(config)).connect(name, socket).await;
        // The setting that the server's certificate does not fit.
        let connected = connected.map_err(|error| match refused_certificate(&error) {
            Some(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }) => {
                wrong("server_name", &error)
            }
            Some(_) => wrong("ca_file", &error),
            None => error,
        });
        Ok(Box::pin(connected?))
    }

    async fn dial(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect((self.address.host.as_str(), self.address.port)).await?;
        socket.set_nodelay(true)?;
        watch_peer(&socket)?;
        Ok(socket)
    }
}

/// The fault of the server's certificate, if the handshake failed because of it.
fn refused_certificate(error: &io::Error) -> Option<&CertificateError> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(reason) => Some(reason),
        _ => None,
    }
}

fn watch_peer(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_EVERY)?;
    #[cfg(target_os = "linux")]
    {
        let timeout = u32::try_from(USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(socket, timeout)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel finds a peer that has gone, because no HTTP/2 PING asks for it.
    #[tokio::test]
    async fn the_kernel_watches_the_peer() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let connector =
            XdsConnector { address: XdsAddress { host: "127.0.0.1".to_owned(), port }, tls: None };
        let socket = connector.dial().await.unwrap();
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 30_000);
        assert!(sockopt::socket_keepalive(&socket).unwrap() && socket.nodelay().unwrap());
        assert_eq!(sockopt::tcp_keepidle(&socket).unwrap(), Duration::from_secs(15));
        assert_eq!(sockopt::tcp_keepintvl(&socket).unwrap(), Duration::from_secs(5));
    }
}
