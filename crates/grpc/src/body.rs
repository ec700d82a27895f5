//! The request body of one stream, as a service reads it.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tonic::Status;

use crate::inflate::Inflater;

/// The body of a request. Bytes that are read or dropped return flow-control credit.
pub struct RequestBody(BodyKind);

/// A message that counts as unread until it and all parts of it are dropped. Until then its bytes return no credit
/// and stay in the buffer budget.
struct HeldMessage {
    message: Bytes,
    buffer: Arc<BodyBuffer>,
    /// Length of the message in the body, in bytes.
    length: usize,
}

impl AsRef<[u8]> for HeldMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        self.buffer.note_read(self.length);
    }
}

enum BodyKind {
    /// A complete body: in one piece or, in tests of services, in several. The others are boxed, so that nearly every body is
    /// small, and has nothing to drop beside its bytes.
    #[allow(clippy::box_collection)] // a word where a body usually has one piece, in place of four
    Whole(Bytes, Option<Box<VecDeque<Bytes>>>),
    /// A body that arrives in pieces.
    Pieces(Arc<BodyBuffer>),
    /// A body whose messages are decompressed.
    Inflated(Box<InflatedBody>),
}

/// A body whose messages may be compressed.
struct InflatedBody {
    body: RequestBody,
    inflater: Inflater,
}

/// The reason why a body cannot be read to its end.
#[derive(Debug)]
pub enum BodyFault {
    /// The client has reset the stream or closed the connection.
    ClientGone(ClientGone),
    /// A compressed message is invalid or too large, or finds no space.
    Message(Box<Status>),
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientGone(gone) => gone.fmt(f),
            Self::Message(status) => write!(f, "a message cannot be read: {}", status.message()),
        }
    }
}

/// tonic searches the sources of an error for a `Status`. A `Box<Status>` is another type.
impl Error for BodyFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::ClientGone(gone) => Some(gone),
            Self::Message(status) => Some(&**status),
        }
    }
}

/// The client has reset the stream or closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client went away")]
pub struct ClientGone;

/// Unread bytes of a stream. One contiguous buffer: a list with an entry per frame would be many times as large as
/// the window when frames are small.
pub(crate) struct BodyBuffer {
    stream: u32,
    ledger: ReadLedger,
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    waiting: BytesMut,
    end: Option<Result<(), ClientGone>>,
    /// The reader was dropped: further bytes are discarded.
    abandoned: bool,
    reader: Option<Waker>,
}

/// Bytes read by the services per stream, until the connection takes the counts.
#[derive(Clone, Default)]
pub(crate) struct ReadLedger(Arc<Mutex<Vec<(u32, usize)>>>);

impl ReadLedger {
    fn note(&self, stream: u32, bytes: usize) {
        if bytes > 0 {
            self.0.lock().push((stream, bytes));
        }
    }

    pub(crate) fn take(&self) -> Vec<(u32, usize)> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl BodyBuffer {
    /// Creates a buffer with the bytes that have arrived already.
    pub(crate) fn new(stream: u32, ledger: &ReadLedger, early: BytesMut) -> Arc<Self> {
        let pieces = Mutex::new(Pieces { waiting: early, ..Pieces::default() });
        Arc::new(Self { stream, ledger: ledger.clone(), pieces })
    }

    /// Appends received bytes.
    pub(crate) fn push(&self, piece: &[u8]) {
        let mut pieces = self.pieces.lock();
        if pieces.abandoned {
            self.ledger.note(self.stream, piece.len());
        } else if !piece.is_empty() {
            pieces.waiting.extend_from_slice(piece);
            wake(pieces.reader.take());
        }
    }

    pub(crate) fn end(&self, how: Result<(), ClientGone>) {
        let mut pieces = self.pieces.lock();
        pieces.end.get_or_insert(how);
        wake(pieces.reader.take());
    }

    /// Discards unread bytes.
    pub(crate) fn clear(&self) {
        let mut pieces = self.pieces.lock();
        let dropped = std::mem::take(&mut pieces.waiting);
        self.ledger.note(self.stream, dropped.len());
    }

    fn note_read(&self, bytes: usize) {
        self.ledger.note(self.stream, bytes);
    }

    /// Polls for the bytes that have arrived since the last read, without counting them as read; `None` at the end.
    fn poll_read(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, ClientGone>>> {
        let mut pieces = self.pieces.lock();
        // A client that has gone gets no answer, so unread bytes are irrelevant.
        if let Some(Err(gone)) = pieces.end {
            return Poll::Ready(Some(Err(gone)));
        }
        if !pieces.waiting.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut pieces.waiting).freeze())));
        }
        match pieces.end {
            Some(_) => Poll::Ready(None),
            None => {
                pieces.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn wake(reader: Option<Waker>) {
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl RequestBody {
    /// Creates a complete body.
    #[must_use]
    #[inline]
    pub const fn whole(body: Bytes) -> Self {
        Self(BodyKind::Whole(body, None))
    }

    /// Creates a complete body that is read piece by piece, for tests of services.
    #[must_use]
    pub fn in_pieces(mut pieces: VecDeque<Bytes>) -> Self {
        pieces.retain(|piece| !piece.is_empty());
        let first = pieces.pop_front().unwrap_or_default();
        Self(BodyKind::Whole(first, (!pieces.is_empty()).then(|| Box::new(pieces))))
    }

    /// Returns the bytes of a complete body in one piece.
    #[inline]
    pub(crate) fn in_one_piece(&mut self) -> Option<&mut Bytes> {
        match &mut self.0 {
            BodyKind::Whole(body, None) => Some(body),
            _ => None,
        }
    }

    /// Decompresses the messages of this body.
    pub(crate) fn inflated(self, inflater: Inflater) -> Self {
        Self(BodyKind::Inflated(Box::new(InflatedBody { body: self, inflater })))
    }

    pub(crate) const fn pieces(inbox: Arc<BodyBuffer>) -> Self {
        Self(BodyKind::Pieces(inbox))
    }

    /// Polls for the next bytes. They count as unread until their messages are passed to [`RequestBody::hold`].
    pub(crate) fn poll_unread(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyFault>>> {
        match &self.0 {
            BodyKind::Pieces(inbox) => inbox.poll_read(context).map_err(BodyFault::ClientGone),
            BodyKind::Whole(..) | BodyKind::Inflated(_) => {
                let frame = ready!(Pin::new(self).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default())))
            }
        }
    }

    /// Wraps a message of `length` bytes of this body, so that it counts as unread until it is dropped.
    pub(crate) fn hold(&self, message: Bytes, length: usize) -> Bytes {
        match &self.0 {
            BodyKind::Pieces(inbox) => {
                Bytes::from_owner(HeldMessage { message, buffer: Arc::clone(inbox), length })
            }
            // An inflated message is held already.
            BodyKind::Whole(..) | BodyKind::Inflated(_) => message,
        }
    }
}

impl InflatedBody {
    /// Polls for the next decompressed message. Its bytes count as unread until it is dropped.
    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        loop {
            if let Some(next) = self.inflater.next_message() {
                let held = next.map(|(message, length)| self.body.hold(message, length));
                return Poll::Ready(Some(held.map_err(|status| BodyFault::Message(Box::new(status)))));
            }
            match ready!(self.body.poll_unread(context)) {
                Some(Ok(bytes)) => self.inflater.push(&bytes),
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                None if self.inflater.is_between_messages() => return Poll::Ready(None),
                None => {
                    let ended = Box::new(Status::internal("the call ended within a message"));
                    return Poll::Ready(Some(Err(BodyFault::Message(ended))));
                }
            }
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyFault;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let inbox = match &mut self.0 {
            BodyKind::Whole(body, _) if body.is_empty() => return Poll::Ready(None),
            BodyKind::Whole(body, rest) => {
                let next = rest.as_mut().and_then(|rest| rest.pop_front()).unwrap_or_default();
                return Poll::Ready(Some(Ok(Frame::data(std::mem::replace(body, next)))));
            }
            BodyKind::Pieces(inbox) => inbox,
            BodyKind::Inflated(inflated) => {
                return inflated.poll_message(context).map(|next| next.map(|next| next.map(Frame::data)));
            }
        };
        let read = ready!(inbox.poll_read(context));
        Poll::Ready(read.map(|read| {
            read.map_err(BodyFault::ClientGone).map(|bytes| {
                inbox.note_read(bytes.len());
                Frame::data(bytes)
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Whole(body, _) => body.is_empty(),
            BodyKind::Pieces(inbox) => {
                let pieces = inbox.pieces.lock();
                pieces.waiting.is_empty() && pieces.end == Some(Ok(()))
            }
            BodyKind::Inflated(inflated) => {
                inflated.inflater.is_between_messages() && inflated.body.is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}

impl Drop for RequestBody {
    #[inline]
    fn drop(&mut self) {
        if let BodyKind::Pieces(inbox) = &self.0 {
            inbox.pieces.lock().abandoned = true;
            inbox.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one byte once took a list entry and an allocation of its own. That was fifty times what the
    /// window had counted, on every stream whose service did not read.
    #[test]
    fn many_small_frames_are_kept_as_one_piece() {
        let ledger = ReadLedger::default();
        let inbox = BodyBuffer::new(1, &ledger, BytesMut::new());
        let mut body = RequestBody::pieces(Arc::clone(&inbox));
        for number in 0..1000_u32 {
            inbox.push(&[number as u8]);
            inbox.push(&[]);
        }
        inbox.end(Ok(()));
        let context = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(context) else {
            panic!("they are there")
        };
        let expected: Vec<u8> = (0..1000_u32).map(|number| number as u8).collect();
        assert_eq!(frame.into_data().unwrap(), expected);
        assert_eq!(ledger.take(), [(1, 1000)]);
        assert!(matches!(Pin::new(&mut body).poll_frame(context), Poll::Ready(None)));
    }
}
