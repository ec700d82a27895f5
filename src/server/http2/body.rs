//! What a caller sends on one stream, as the services read it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

/// The body of a request. What has been read, or is dropped, makes room for more to be sent.
pub(in crate::server) struct Received(Kind);

enum Kind {
    /// All of it, which has arrived.
    Whole(Bytes),
    /// What comes piece by piece.
    Pieces(Arc<Inbox>),
}

/// The caller has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the caller went away")]
pub(in crate::server) struct Gone;

/// Where what comes on a stream waits for whoever reads it: in one buffer, because a list of what each frame
/// has brought would be many times as large as the window where frames are small.
pub(super) struct Inbox {
    stream: u32,
    ledger: Ledger,
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    waiting: BytesMut,
    end: Option<Result<(), Gone>>,
    /// Nobody reads any more.
    unread: bool,
    reader: Option<Waker>,
}

/// How much of which stream has been read since the connection last looked.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<(u32, usize)>>>);

impl Ledger {
    fn note(&self, stream: u32, bytes: usize) {
        if bytes > 0 {
            self.0.lock().push((stream, bytes));
        }
    }

    /// What has been noted.
    pub(super) fn take(&self) -> Vec<(u32, usize)> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Inbox {
    /// With what has arrived already.
    pub(super) fn new(stream: u32, ledger: &Ledger, early: BytesMut) -> Arc<Self> {
        let pieces = Mutex::new(Pieces { waiting: early, ..Pieces::default() });
        Arc::new(Self { stream, ledger: ledger.clone(), pieces })
    }

    /// Another piece has come.
    pub(super) fn push(&self, piece: &[u8]) {
        let mut pieces = self.pieces.lock();
        if pieces.unread {
            self.ledger.note(self.stream, piece.len());
        } else if !piece.is_empty() {
            pieces.waiting.extend_from_slice(piece);
            wake(pieces.reader.take());
        }
    }

    /// No further one will.
    pub(super) fn end(&self, how: Result<(), Gone>) {
        let mut pieces = self.pieces.lock();
        pieces.end.get_or_insert(how);
        wake(pieces.reader.take());
    }

    /// Drops what waits.
    pub(super) fn clear(&self) {
        let mut pieces = self.pieces.lock();
        let left = std::mem::take(&mut pieces.waiting);
        self.ledger.note(self.stream, left.len());
    }
}

fn wake(reader: Option<Waker>) {
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl Received {
    pub(super) const fn whole(body: Bytes) -> Self {
        Self(Kind::Whole(body))
    }

    pub(super) const fn pieces(inbox: Arc<Inbox>) -> Self {
        Self(Kind::Pieces(inbox))
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = Gone;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Gone>>> {
        let inbox = match &mut self.0 {
            Kind::Whole(body) if body.is_empty() => return Poll::Ready(None),
            Kind::Whole(body) => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(body))))),
            Kind::Pieces(inbox) => inbox,
        };
        let mut pieces = inbox.pieces.lock();
        // Who has gone is answered no more: what they have sent last means nothing.
        if let Some(Err(gone)) = pieces.end {
            return Poll::Ready(Some(Err(gone)));
        }
        if !pieces.waiting.is_empty() {
            let waiting = std::mem::take(&mut pieces.waiting).freeze();
            inbox.ledger.note(inbox.stream, waiting.len());
            return Poll::Ready(Some(Ok(Frame::data(waiting))));
        }
        match pieces.end {
            Some(_) => Poll::Ready(None),
            None => {
                pieces.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_empty(),
            Kind::Pieces(inbox) => {
                let pieces = inbox.pieces.lock();
                pieces.waiting.is_empty() && pieces.end == Some(Ok(()))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let Kind::Pieces(inbox) = &self.0 {
            inbox.pieces.lock().unread = true;
            inbox.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one byte once took an entry of a list and an allocation of its own: fifty times what the
    /// window had counted, on every stream whose service did not read.
    #[test]
    fn many_small_frames_wait_as_one_piece() {
        let ledger = Ledger::default();
        let inbox = Inbox::new(1, &ledger, BytesMut::new());
        let mut body = Received::pieces(Arc::clone(&inbox));
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
