//! The pace of a connection: what it waits for, and until when. A client that is too slow loses its connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_grpc::BoxedStream;
use weir_time::clock::monotonic;

/// Time in which the headers of a request, its body, and the reading of its answer must be complete, each for itself.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// The step for which a connection waits, and the time since which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaceStep {
    /// The first byte of the next request.
    Idle(Instant),
    /// The headers of a request.
    Head(Instant),
    /// The body of a request.
    Body(Instant),
    /// The answer to a request.
    Answer,
    /// The client, which reads the answer.
    Written(Instant),
}

/// The pace of a connection, shared by its bytes, its requests and what ends it.
#[derive(Debug)]
pub(crate) struct ConnectionPace {
    step: Mutex<PaceStep>,
    idle_timeout: Duration,
}

impl ConnectionPace {
    pub(crate) fn new(idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { step: Mutex::new(PaceStep::Head(monotonic())), idle_timeout })
    }

    /// Begins a step.
    pub(crate) fn set(&self, step: PaceStep) {
        *self.step.lock() = step;
    }

    /// Returns the reason why the connection ends, if it is too late; otherwise the time of the next check.
    pub(crate) fn check(&self, now: Instant) -> Result<Instant, &'static str> {
        let (since, timeout, reason) = match *self.step.lock() {
            PaceStep::Idle(since) => (since, self.idle_timeout, "idle"),
            PaceStep::Head(since) => (since, STEP_TIMEOUT, "slow_headers"),
            PaceStep::Body(since) => (since, STEP_TIMEOUT, "slow_body"),
            PaceStep::Written(since) => (since, STEP_TIMEOUT, "slow_reader"),
            PaceStep::Answer => return Ok(now + STEP_TIMEOUT),
        };
        let end = since + timeout;
        if end <= now {
            return Err(reason);
        }
        // A step that begins after this look ends after the next one at the earliest, which sees its end.
        Ok(end.min(now + STEP_TIMEOUT))
    }

    fn reads_headers(&self) -> bool {
        matches!(*self.step.lock(), PaceStep::Head(_))
    }

    fn has_read(&self) {
        let mut step = self.step.lock();
        if let PaceStep::Idle(_) = *step {
            *step = PaceStep::Head(monotonic());
        }
    }

    fn has_flushed(&self) {
        let mut step = self.step.lock();
        if let PaceStep::Written(_) = *step {
            *step = PaceStep::Idle(monotonic());
        }
    }
}

/// The bytes of a connection, which tell its pace.
pub(crate) struct PacedStream {
    stream: BoxedStream,
    pace: Arc<ConnectionPace>,
    /// The rest of our refusal of large headers, in the place of hyper's, which has no body.
    refusal: Option<&'static [u8]>,
}

/// The answer to headers above a bound of hyper.
const TOO_LARGE: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\n\
content-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff\r\n\
content-length: 60\r\nconnection: close\r\n\r\n\
the headers of a request have 100 fields and 16 KiB at most\n";

impl PacedStream {
    pub(crate) fn new(stream: BoxedStream, pace: Arc<ConnectionPace>) -> Self {
        Self { stream, pace, refusal: None }
    }

    /// Writes our refusal if these are the first bytes of hyper's: no request of ours is answered while its headers are read.
    fn poll_refusal(&mut self, context: &mut Context<'_>, first: &[u8]) -> Option<Poll<io::Result<()>>> {
        if self.refusal.is_none() {
            if !first.starts_with(b"HTTP/1.1 431 ") || !self.pace.reads_headers() {
                return None;
            }
            self.refusal = Some(TOO_LARGE);
        }
        while let Some(rest @ [_, ..]) = self.refusal {
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into()))),
                Poll::Ready(Ok(written)) => self.refusal = rest.get(written..),
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => return Some(Poll::Pending),
            }
        }
        Some(Poll::Ready(Ok(())))
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.pace.has_read();
        }
        read
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_refusal(context, bytes) {
            Some(written) => written.map_ok(|()| bytes.len()),
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.poll_refusal(context, slices.first().map_or(&[][..], |first| &**first)) {
            Some(written) => written.map_ok(|()| slices.iter().map(|slice| slice.len()).sum()),
            None => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = flushed {
            self.pace.has_flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_begins_after_a_look_is_seen_in_time() {
        let pace = ConnectionPace::new(Duration::from_secs(75));
        let start = monotonic();
        let at = |seconds| start + Duration::from_secs(seconds);
        pace.set(PaceStep::Idle(start));
        // An idle connection is looked at every ten seconds.
        assert_eq!(pace.check(at(1)), Ok(at(11)));
        pace.set(PaceStep::Head(at(2)));
        assert_eq!(pace.check(at(11)), Ok(at(12)));
        assert_eq!(pace.check(at(12)), Err("slow_headers"));
        pace.set(PaceStep::Answer);
        assert_eq!(pace.check(at(50)), Ok(at(60)));
        pace.set(PaceStep::Idle(at(50)));
        assert_eq!(pace.check(at(124)), Ok(at(125)));
        assert_eq!(pace.check(at(125)), Err("idle"));
    }
}
