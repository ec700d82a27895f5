//! The ceiling of HTTP: a hyper server that answers at once and always the same bytes, on a single-threaded runtime per core. It
//! runs in a process of its own.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

/// The argument that makes this program that server.
pub const ARGUMENT: &str = "--bare-http";

/// The answer of the listener to the same question.
const ANSWER: &str = r#"{"allowed":true,"limit":"1000000000","remaining":"999999999","resetAfter":"0.000001s","reason":"REASON_OK","deniedBy":[],"limits":[{"name":"each","allowed":true,"limit":"1000000000","remaining":"999999999","resetAfter":"0.000001s"}]}"#;

/// Serves on this port. Never returns.
pub fn serve(port: u16) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).expect("bind the port");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers: Vec<_> = (0..cores)
        .map(|_| {
            let (hand_over, sockets) = tokio::sync::mpsc::unbounded_channel();
            std::thread::spawn(move || work(sockets));
            hand_over
        })
        .collect();
    for (index, socket) in listener.incoming().enumerate() {
        let socket = socket.expect("accept");
        socket.set_nodelay(true).expect("set TCP_NODELAY");
        socket.set_nonblocking(true).expect("make it non-blocking");
        workers[index % cores].send(socket).expect("the workers live");
    }
}

fn work(mut sockets: tokio::sync::mpsc::UnboundedReceiver<std::net::TcpStream>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        while let Some(socket) = sockets.recv().await {
            let socket = tokio::net::TcpStream::from_std(socket).expect("register the socket");
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer)));
        }
    });
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    let mut answer = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
    for (name, value) in [("content-type", "application/json"), ("x-content-type-options", "nosniff")] {
        answer.headers_mut().insert(name, http::HeaderValue::from_static(value));
    }
    Ok(answer)
}
