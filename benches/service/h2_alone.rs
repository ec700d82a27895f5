//! The cost of HTTP/2 by the crate h2, without gRPC's layers above it: a server that reads each call to its end, and
//! answers always the same, on a single-threaded runtime per core. It runs in a process of its own.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, server};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::bare;

/// The argument that makes this program that server.
pub const ARGUMENT: &str = "--h2";

/// Serves on this port. Never returns.
pub fn serve(port: u16) {
    bare::on_each_core(port, async |mut sockets| {
        let answer = bare::framed_answer();
        while let Some(socket) = sockets.recv().await {
            let socket = TcpStream::from_std(socket).expect("a socket of this runtime");
            tokio::task::spawn_local(connection(socket, answer.clone()));
        }
    });
}

/// Serves one connection until it ends, within a [`tokio::task::LocalSet`].
pub async fn connection<I>(socket: I, answer: Bytes) -> Result<(), h2::Error>
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = server::handshake(socket).await?;
    while let Some(call) = connection.accept().await {
        let (request, respond) = call?;
        tokio::task::spawn_local(answer_call(request, respond, answer.clone()));
    }
    Ok(())
}

async fn answer_call(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    answer: Bytes,
) -> Result<(), h2::Error> {
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        let length = data?.len();
        body.flow_control().release_capacity(length)?;
    }
    let mut response = Response::new(());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    let mut stream = respond.send_response(response, false)?;
    stream.send_data(answer, false)?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    stream.send_trailers(trailers)
}
