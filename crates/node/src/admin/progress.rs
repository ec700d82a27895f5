//! The progress of a connection to the admin port: it tells if the connection waits for its client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_time::clock::monotonic;

/// Time in which a client must send the headers of a request, and time in which it must take the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Time that a connection may be idle between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The phase of a connection, and the time at which it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A request is awaited or incomplete.
    Request(Instant),
    /// The response is blocked: the client does not read it.
    Blocked(Instant),
    /// All output so far was taken. The next bytes are a new request, or more of the response.
    Written { first: Instant, last: Instant },
}

/// The progress of a connection, shared by its socket and by the task that closes it.
#[derive(Debug)]
pub(super) struct Progress(Mutex<Phase>);

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(Phase::Request(now)))
    }

    /// Returns the time since which the connection waits for its client.
    pub(super) fn since(&self) -> Instant {
        match *self.0.lock() {
            Phase::Request(since) | Phase::Blocked(since) => since,
            Phase::Written { last, .. } => last,
        }
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        match *self.0.lock() {
            Phase::Request(since) | Phase::Blocked(since) => now >= since + REQUEST_TIMEOUT,
            Phase::Written { last, .. } => now >= last + IDLE_TIMEOUT,
        }
    }

    fn read(&self, now: Instant) {
        let mut phase = self.0.lock();
        if matches!(*phase, Phase::Written { .. }) {
            *phase = Phase::Request(now);
        }
    }

    fn wrote(&self, now: Instant) {
        let mut phase = self.0.lock();
        *phase = Phase::Written { first: phase.first_write(now), last: now };
    }

    fn blocked(&self, now: Instant) {
        let mut phase = self.0.lock();
        *phase = Phase::Blocked(phase.first_write(now));
    }
}

impl Phase {
    /// Returns the time of the response's first write. A client that takes a byte now and then gets no more time.
    fn first_write(self, now: Instant) -> Instant {
        match self {
            Self::Request(_) => now,
            Self::Blocked(first) | Self::Written { first, .. } => first,
        }
    }
}

pub(super) struct ObservedSocket<I> {
    pub(super) socket: I,
    pub(super) progress: Arc<Progress>,
}

impl<I: AsyncRead + Unpin> AsyncRead for ObservedSocket<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.progress.read(monotonic());
        }
        result
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ObservedSocket<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write(cx, bytes);
        match result {
            Poll::Pending => self.progress.blocked(monotonic()),
            Poll::Ready(Ok(_)) => self.progress.wrote(monotonic()),
            Poll::Ready(Err(_)) => {}
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn callers_who_keep_a_connection_waiting_are_late() {
        let start = monotonic();
        let progress = Progress::new(start);
        // An incomplete request, sent byte by byte.
        progress.read(start + 4 * SECOND);
        assert!(!progress.is_late(start + 4 * SECOND) && progress.is_late(start + 5 * SECOND));
        // Its response, and the idle time until the next request.
        progress.wrote(start + 6 * SECOND);
        assert!(!progress.is_late(start + 65 * SECOND) && progress.is_late(start + 66 * SECOND));
        // A response that is taken byte by byte.
        progress.read(start + 70 * SECOND);
        progress.wrote(start + 71 * SECOND);
        progress.blocked(start + 72 * SECOND);
        progress.wrote(start + 75 * SECOND);
        progress.blocked(start + 76 * SECOND);
        assert!(progress.is_late(start + 76 * SECOND));
    }
}
