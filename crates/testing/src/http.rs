//! An HTTP/1.1 client with keep-alive connections.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::response::Parts;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpSocket;

/// One connection.
pub struct Http {
    sender: SendRequest<Empty<Bytes>>,
}

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    headers: HeaderMap,
    /// The body, which must be UTF-8.
    pub body: String,
}

impl HttpResponse {
    /// Returns a header's only value, or "" if it is absent.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map_or("", |value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} comes more than once: {:?}", self.headers);
        value
    }
}

impl Http {
    /// A new connection to `server`.
    pub async fn connect(server: SocketAddr) -> Self {
        Self::connect_from(Ipv4Addr::LOCALHOST.into(), server).await
    }

    /// A connection from this address of the loopback network.
    pub async fn connect_from(client: IpAddr, server: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(client, 0)).unwrap();
        let stream = socket.connect(server).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    /// GETs a path.
    pub async fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        let (parts, body) = self.get_raw(path, headers).await;
        let body = String::from_utf8(body.to_vec()).unwrap();
        HttpResponse { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// GETs the bytes of a path.
    pub async fn get_bytes(&mut self, path: &str, headers: &[(&str, &str)]) -> Bytes {
        self.get_raw(path, headers).await.1
    }

    async fn get_raw(&mut self, path: &str, headers: &[(&str, &str)]) -> (Parts, Bytes) {
        let mut request = Request::get(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.ready().await.expect("the server keeps the connection");
        let response = self.sender.send_request(request.body(Empty::new()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts, body.collect().await.unwrap().to_bytes())
    }
}
