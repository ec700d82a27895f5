//! The program that connectrpc's conformance suite runs: its service behind the layer of the HTTP listener.
//!
//! `connectconformance --mode server --conf conf.yaml -- weir_conformance`: it reads what to serve from standard input, and
//! writes its address to standard output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a program of tests

mod descriptors;
mod messages;
mod service;
mod tls;

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use prost::Message;
use tokio::net::TcpListener;
use tokio::task::LocalSet;
use weir_grpc::{BoxedStream, Peer, PeerAddress};
use weir_http::port_with_metadata;
use weir_node::feature::{PortConnection, ServePort};

use self::messages::{ServerCompatRequest, ServerCompatResponse};
use self::service::ConformanceCalls;

fn main() {
    let asked: ServerCompatRequest = read();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, serve(asked));
}

/// Reads a message behind its length.
fn read<M: Message + Default>() -> M {
    let mut length = [0; 4];
    std::io::stdin().read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    std::io::stdin().read_exact(&mut bytes).unwrap();
    M::decode(bytes.as_slice()).unwrap()
}

async fn serve(asked: ServerCompatRequest) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = u32::from(listener.local_addr().unwrap().port());
    let credentials = asked.server_creds.clone().filter(|_| asked.use_tls);
    let acceptor = credentials.as_ref().map(|it| tls::acceptor(it, &asked.client_tls_cert));
    let pem_cert = credentials.map(|it| it.cert).unwrap_or_default();
    let answer = ServerCompatResponse { host: "127.0.0.1".to_owned(), port, pem_cert }.encode_to_vec();
    let mut out = std::io::stdout();
    out.write_all(&u32::try_from(answer.len()).unwrap().to_be_bytes()).unwrap();
    out.write_all(&answer).unwrap();
    out.flush().unwrap();
    let calls = Arc::new(ConformanceCalls::new(asked.message_receive_limit as usize));
    let shapes = Box::leak(Box::new(descriptors::shapes()));
    let served = port_with_metadata(shapes, calls.clone(), calls).unwrap();
    loop {
        let (stream, from) = listener.accept().await.unwrap();
        let (served, acceptor) = (Arc::clone(&served), acceptor.clone());
        tokio::spawn(async move {
            let stream: BoxedStream = match acceptor {
                None => Box::new(stream),
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(secured) => Box::new(secured),
                    Err(_) => return,
                },
            };
            connection(&*served, stream, Peer::new(PeerAddress::Tcp(from))).await;
        });
    }
}

async fn connection(port: &dyn ServePort, stream: BoxedStream, peer: Peer) {
    let over = Box::pin(std::future::pending());
    port.serve(PortConnection { stream, peer: Arc::new(peer), over }).await;
}
