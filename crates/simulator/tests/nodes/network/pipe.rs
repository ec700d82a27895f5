//! A connection as its node has it: a byte stream.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::UnboundedSender;

use crate::timeline::Timeline;

/// Bytes on their way, and when they left.
pub(super) struct SentBytes {
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

/// The state that both ends of a connection share.
#[derive(Default)]
pub(crate) struct Pipe(Mutex<PipeState>);

#[derive(Default)]
struct PipeState {
    arrived: VecDeque<u8>,
    reader: Option<Waker>,
    has_ended: bool,
    loses_calls: bool,
}

impl Pipe {
    /// The connection is lost, with what is on its way to the node, and to the server if `both_ways`.
    pub(super) fn lose(&self, both_ways: bool) {
        let mut state = self.0.lock();
        state.has_ended = true;
        state.loses_calls |= both_ways;
        state.wake();
    }

    pub(super) fn loses_calls(&self) -> bool {
        self.0.lock().loses_calls
    }

    /// Bytes arrive at the node.
    pub(super) fn arrive(&self, bytes: &[u8]) {
        let mut state = self.0.lock();
        if !state.has_ended {
            state.arrived.extend(bytes);
            state.wake();
        }
    }
}

impl PipeState {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The node's end.
pub(crate) struct SimulatedStream {
    pub(super) timeline: Timeline,
    pub(super) pipe: Arc<Pipe>,
    pub(super) sent: UnboundedSender<SentBytes>,
}

impl AsyncRead for SimulatedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.pipe.0.lock();
        if state.arrived.is_empty() {
            if state.has_ended {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let count = buffer.remaining().min(state.arrived.len());
        for byte in state.arrived.drain(..count) {
            buffer.put_slice(&[byte]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimulatedStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.pipe.0.lock().has_ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        // A carrier that has gone takes nothing more; the reader learns of it.
        let _ = self.sent.send(SentBytes { at: self.timeline.now(), bytes: bytes.to_vec() });
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
