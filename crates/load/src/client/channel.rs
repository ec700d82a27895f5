//! The channel of a client: plain text or TLS, with the token in each call.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::{InterceptedService, Service};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Channel, Endpoint, Error, Uri};
use tonic::{Request, Status};

use crate::access::{ClientTls, ServerAccess};

/// A channel whose calls have the token.
pub(super) type AccessChannel = InterceptedService<Channel, AddToken>;

/// Adds the token to each call, if there is one.
#[derive(Clone)]
pub(super) struct AddToken(Option<MetadataValue<Ascii>>);

/// Opens TLS connections.
struct OverTls(ClientTls);

/// Connects to `endpoint`, whose address is written with `http:` even if the connection has TLS: tonic's own TLS is left
/// out.
pub(super) async fn connect(endpoint: Endpoint, access: &ServerAccess) -> Result<AccessChannel, Error> {
    let channel = match &access.tls {
        None => endpoint.connect().await?,
        Some(tls) => endpoint.connect_with_connector(OverTls(tls.clone())).await?,
    };
    let token = access.token.as_ref().and_then(|token| MetadataValue::try_from(token.header()).ok());
    let token = token.map(|mut token| {
        token.set_sensitive(true);
        token
    });
    Ok(InterceptedService::new(channel, AddToken(token)))
}

impl Interceptor for AddToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

impl Service<Uri> for OverTls {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let ClientTls { config, name } = self.0.clone();
        Box::pin(async move {
            let address = uri.authority().map_or("", |authority| authority.as_str());
            let socket = TcpStream::connect(address).await?;
            socket.set_nodelay(true)?;
            Ok(TokioIo::new(TlsConnector::from(config).connect(name, socket).await?))
        })
    }
}
