//! The socket I/O of a connection.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::{ConnectionEnd, Http2Connection};
use crate::service::HotService;

/// Size of the read buffer in bytes.
const READ: usize = 64 << 10;

thread_local! {
    /// The read buffer, shared by the connections of a thread. Frames are consumed at once, so an idle connection
    /// has none.
    static READ_BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

impl<I: AsyncRead + AsyncWrite + Unpin, H: HotService> Http2Connection<I, H> {
    /// Writes the output; true if nothing is left.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> Result<bool, io::Error> {
        let output = self.session.output();
        let mut written = 0;
        while written < output.len() {
            match Pin::new(&mut self.transport).poll_write(context, &output[written..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(bytes) => written += bytes,
                Poll::Pending => {
                    output.drain(..written);
                    return Ok(false);
                }
            }
        }
        output.clear();
        Ok(true)
    }

    /// Reads once and processes the complete frames; false at the end of the stream.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, ConnectionEnd>> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.transport).poll_read(context, &mut buffer))?;
            let bytes = buffer.filled();
            if bytes.is_empty() {
                return Poll::Ready(Ok(false));
            }
            let taken = if self.partial_frame.is_empty() {
                let taken = self.session.read(bytes);
                self.partial_frame.extend_from_slice(&bytes[*taken.as_ref().unwrap_or(&bytes.len())..]);
                taken
            } else {
                self.partial_frame.extend_from_slice(bytes);
                let taken = self.session.read(&self.partial_frame);
                self.partial_frame.drain(..*taken.as_ref().unwrap_or(&0));
                if self.partial_frame.is_empty() {
                    self.partial_frame = Vec::new();
                }
                taken
            };
            if let Err(error) = taken {
                self.session.close(Some(error));
                self.error = Some(error);
            }
            Poll::Ready(Ok(true))
        })
    }

    /// Writes the last output; after an error only as much as can be written at once.
    pub(super) fn poll_end(
        &mut self,
        context: &mut Context<'_>,
        written: bool,
    ) -> Poll<Result<(), ConnectionEnd>> {
        if let Some(error) = self.error {
            let _ = Pin::new(&mut self.transport).poll_shutdown(context);
            return Poll::Ready(Err(ConnectionEnd::Protocol(error)));
        }
        if !written {
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.transport).poll_shutdown(context))?;
        Poll::Ready(Ok(()))
    }
}
