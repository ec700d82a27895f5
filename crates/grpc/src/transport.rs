//! The byte stream below one connection, with a timeout for the handshake.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::keepalive::LastActivity;

/// Implements `AsyncWrite` for a wrapper `T<I>` by its field `stream: I`.
#[macro_export]
macro_rules! write_to_inner_stream {
    ($wrapper:ident) => {
        impl<I: ::tokio::io::AsyncWrite + Unpin> ::tokio::io::AsyncWrite for $wrapper<I> {
            fn poll_write(
                mut self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
                bytes: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                ::std::pin::Pin::new(&mut self.stream).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                mut self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
                slices: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                ::std::pin::Pin::new(&mut self.stream).poll_write_vectored(context, slices)
            }

            fn is_write_vectored(&self) -> bool {
                self.stream.is_write_vectored()
            }

            fn poll_flush(
                mut self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::pin::Pin::new(&mut self.stream).poll_flush(context)
            }

            fn poll_shutdown(
                mut self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::pin::Pin::new(&mut self.stream).poll_shutdown(context)
            }
        }
    };
}

/// A byte stream that a connection can be served on: TCP, a Unix socket, or TLS over TCP.
pub trait DuplexBytes: AsyncRead + AsyncWrite + Unpin + Send {}

impl<I: AsyncRead + AsyncWrite + Unpin + Send> DuplexBytes for I {}

/// A byte stream of any kind, for code that is not on the path of a decision: it is compiled once for all kinds.
pub type BoxedStream = Box<dyn DuplexBytes>;

/// Any byte stream: TCP, a Unix socket, TLS, or a pipe in memory.
pub(crate) struct ByteStream<I> {
    stream: I,
    /// Handshake timeout: ends the connection. Keepalive watches it from the handshake on.
    handshake_timeout: Option<Pin<Box<Sleep>>>,
    activity: LastActivity,
}

impl<I> ByteStream<I> {
    /// Wraps a byte stream. Must be called within a runtime.
    pub(crate) fn new(stream: I, handshake_timeout: Duration) -> Self {
        let handshake_timeout = Some(Box::pin(tokio::time::sleep(handshake_timeout)));
        Self { stream, handshake_timeout, activity: LastActivity::now() }
    }

    /// Stops the handshake timeout.
    pub(crate) fn handshake_done(&mut self) {
        self.handshake_timeout = None;
    }

    /// Returns the time at which bytes last arrived, shared with this stream.
    pub(crate) fn activity(&self) -> LastActivity {
        self.activity.clone()
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ByteStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.update();
        }
        if polled.is_pending()
            && let Some(timeout) = &mut self.handshake_timeout
            && timeout.as_mut().poll(context).is_ready()
        {
            tracing::debug!(
                "a connection was closed: the client did not complete the HTTP/2 handshake in time"
            );
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }
}

write_to_inner_stream!(ByteStream);
