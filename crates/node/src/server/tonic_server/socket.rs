//! The byte stream below one connection: a timeout for the handshake, and its events.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::Sleep;
use tonic::transport::server::Connected;

/// Length of the client's preface (RFC 9113, 3.4), and of the header of the SETTINGS frame behind it. A frame
/// header begins with the length of the payload.
const PREFACE: usize = 24;
const FRAME_HEADER: usize = 9;

/// Any byte stream: TCP, a Unix socket, TLS, or a pipe in memory.
pub(super) struct Socket<I> {
    stream: I,
    handshake: Option<FirstBytes>,
    /// Ends with the server of the connection; `None` from then on.
    served: Option<oneshot::Receiver<()>>,
    /// Dropped with the connection, which ends [`SocketEvents::ended`].
    _open: oneshot::Sender<()>,
}

struct FirstBytes {
    /// The received part of preface and frame header.
    head: Vec<u8>,
    received: usize,
    timeout: Pin<Box<Sleep>>,
    /// Dropped once the handshake is done, which ends [`SocketEvents::handshake_done`].
    _pending: oneshot::Sender<()>,
}

/// Held by the server of the connection. The socket fails once it is dropped: tonic has a task for each connection, which
/// would wait for its client.
pub(super) struct ServedGuard {
    _served: oneshot::Sender<()>,
}

/// The events of a socket that a server has taken over.
pub(super) struct SocketEvents {
    ended: oneshot::Receiver<()>,
    handshake_done: oneshot::Receiver<()>,
}

impl<I> Socket<I> {
    /// Wraps a byte stream. Must be called within a runtime.
    pub(super) fn new(stream: I, handshake_timeout: Duration) -> (Self, SocketEvents, ServedGuard) {
        let (open, ended) = oneshot::channel();
        let (guard, served) = oneshot::channel();
        let (pending, handshake_done) = oneshot::channel();
        let timeout = Box::pin(tokio::time::sleep(handshake_timeout));
        let head = Vec::with_capacity(PREFACE + FRAME_HEADER);
        let handshake = FirstBytes { head, received: 0, timeout, _pending: pending };
        let socket = Self { stream, handshake: Some(handshake), served: Some(served), _open: open };
        (socket, SocketEvents { ended, handshake_done }, ServedGuard { _served: guard })
    }
}

impl<I> Socket<I> {
    /// True once the server of the connection has gone.
    fn is_abandoned(&mut self, context: &mut Context<'_>) -> bool {
        if self.served.as_mut().is_some_and(|served| Pin::new(served).poll(context).is_ready()) {
            self.served = None;
        }
        self.served.is_none()
    }
}

impl FirstBytes {
    /// Reads received bytes; true if they complete the handshake.
    fn is_done_with(&mut self, bytes: &[u8]) -> bool {
        self.received += bytes.len();
        let missing = PREFACE + FRAME_HEADER - self.head.len();
        self.head.extend(bytes.iter().take(missing));
        match self.head.get(PREFACE..) {
            Some(&[a, b, c, _, _, _, _, _, _]) => {
                let payload = u32::from_be_bytes([0, a, b, c]) as usize;
                self.received >= PREFACE + FRAME_HEADER + payload
            }
            _ => false,
        }
    }
}

impl SocketEvents {
    /// Waits until the connection has ended. Call it once.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.ended).await;
    }

    /// Waits until the client has sent its part of the handshake, or the connection has ended. Call it once.
    pub(super) async fn handshake_done(&mut self) {
        let _ = (&mut self.handshake_done).await;
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Socket<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_pending() && self.is_abandoned(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let Some(handshake) = &mut self.handshake else { return polled };
        if handshake.is_done_with(buffer.filled().get(before..).unwrap_or_default()) {
            self.handshake = None;
        } else if polled.is_pending() && handshake.timeout.as_mut().poll(context).is_ready() {
            tracing::debug!(
                "a connection was closed: the client did not complete the HTTP/2 handshake in time"
            );
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }
}

weir_grpc::write_to_inner_stream!(Socket);

impl<I> Connected for Socket<I> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}
