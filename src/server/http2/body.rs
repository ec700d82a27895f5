//! What a caller sends on one stream, as the services read it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
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

/// Where a stream's pieces wait for whoever reads them.
pub(super) struct Inbox {
    stream: u32,
    ledger: Ledger,
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    waiting: VecDeque<Bytes>,
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
    pub(super) fn new(stream: u32, ledger: &Ledger) -> Arc<Self> {
        Arc::new(Self { stream, ledger: ledger.clone(), pieces: Mutex::default() })
    }

    /// Another piece has come.
    pub(super) fn push(&self, piece: Bytes) {
        let mut pieces = self.pieces.lock();
        if pieces.unread {
            self.ledger.note(self.stream, piece.len());
        } else if !piece.is_empty() {
            pieces.waiting.push_back(piece);
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
        let left = pieces.waiting.drain(..).map(|piece| piece.len()).sum();
        self.ledger.note(self.stream, left);
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
        if let Some(piece) = pieces.waiting.pop_front() {
            inbox.ledger.note(inbox.stream, piece.len());
            return Poll::Ready(Some(Ok(Frame::data(piece))));
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
