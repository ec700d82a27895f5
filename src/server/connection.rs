//! One accepted connection, counted for as long as it is open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::keepalive::Heard;

/// A connection on its worker: any stream of bytes, be it of TCP, a Unix socket or in memory.
pub(super) struct Connection<I> {
    stream: I,
    /// How long the other side may take to begin to speak HTTP/2. Until it has, nothing else watches the
    /// connection: keepalive asks only those that speak.
    patience: Option<Pin<Box<Sleep>>>,
    heard: Heard,
    _open: Open,
}

/// Counts one connection until it is dropped.
pub(super) struct Open(Arc<AtomicUsize>);

impl Open {
    pub(super) fn count(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl<I> Connection<I> {
    /// Within the worker's runtime.
    pub(super) fn new(stream: I, open: Open, patience: Duration) -> Self {
        let patience = Some(Box::pin(tokio::time::sleep(patience)));
        Self { stream, patience, heard: Heard::now(), _open: open }
    }

    /// The other side has begun to speak HTTP/2.
    pub(super) fn has_begun(&mut self) {
        self.patience = None;
    }

    /// When it was last heard.
    pub(super) fn heard(&self) -> Heard {
        self.heard.clone()
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Connection<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.heard.again();
        }
        if polled.is_pending()
            && let Some(patience) = &mut self.patience
            && patience.as_mut().poll(context).is_ready()
        {
            tracing::debug!("a connection was closed: it did not begin to speak HTTP/2 in time");
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Connection<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
