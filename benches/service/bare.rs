//! The ceiling: a tonic server that answers at once and always the same, on a single-threaded runtime per
//! core, with the allocator and an answer like those of the service. It runs in a process of its own.

use std::convert::Infallible;
use std::future::Ready;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::LocalSet;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::Connected;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use weir_proto::v1::{LimitStatus, Reason, ShouldAllowRequest, ShouldAllowResponse};

/// The argument that makes this program that server.
pub const ARGUMENT: &str = "--bare";

/// Serves one connection. Never returns.
#[allow(dead_code)] // The benchmark of instructions serves its pipe.
pub async fn connection<I>(stream: I)
where
    I: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(stream)).chain(tokio_stream::pending());
    Server::builder().add_service(Bare).serve_with_incoming(incoming).await.expect("serve");
}

/// Serves on this port. Never returns.
pub fn serve(port: u16) {
    on_each_core(port, async |sockets| {
        let incoming = UnboundedReceiverStream::new(sockets).map(tokio::net::TcpStream::from_std);
        let served = Server::builder().add_service(Bare).serve_with_incoming(incoming);
        served.await.expect("serve");
    });
}

/// Runs `work` on a thread for each core, and hands them the connections to this port by turns. Never returns.
pub fn on_each_core(port: u16, work: impl AsyncFn(UnboundedReceiver<TcpStream>) + Copy + Send + 'static) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).expect("bind the port");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers: Vec<_> = (0..cores)
        .map(|_| {
            let (hand_over, sockets) = mpsc::unbounded_channel();
            std::thread::spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                LocalSet::new().block_on(&runtime, work(sockets));
            });
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

#[derive(Clone)]
struct Bare;

impl NamedService for Bare {
    const NAME: &'static str = "weir.v1.RateLimitService";
}

impl tower_service::Service<http::Request<Body>> for Bare {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async { Ok(Grpc::new(ProstCodec::default()).unary(Constant, request).await) })
    }
}

struct Constant;

impl UnaryService<ShouldAllowRequest> for Constant {
    type Response = ShouldAllowResponse;
    type Future = Ready<Result<Response<ShouldAllowResponse>, Status>>;

    fn call(&mut self, _: Request<ShouldAllowRequest>) -> Self::Future {
        std::future::ready(Ok(Response::new(answer())))
    }
}

/// The message of the answer, as gRPC frames it.
pub fn framed_answer() -> Bytes {
    let message = answer().encode_to_vec();
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put_slice(&message);
    framed.freeze()
}

fn answer() -> ShouldAllowResponse {
    let span = Some(prost_types::Duration { seconds: 0, nanos: 1_000 });
    let limit = LimitStatus {
        name: "each".to_owned(),
        allowed: true,
        limit: 1_000_000_000,
        remaining: 999_999_999,
        reset_after: span,
        ..LimitStatus::default()
    };
    ShouldAllowResponse {
        allowed: true,
        limit: Some(1_000_000_000),
        remaining: Some(999_999_999),
        reset_after: span,
        reason: Reason::Ok.into(),
        limits: vec![limit],
        ..ShouldAllowResponse::default()
    }
}
