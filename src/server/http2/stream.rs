//! One call on its connection, from its headers to the end of its answer.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::body::{Gone, Inbox, Ledger, Received};
use super::head::Head;
use super::work::Pouring;

/// All streams that have not ended.
pub(super) type Streams = HashMap<u32, Stream, foldhash::fast::RandomState>;

/// The most bytes of a body that need not be given back when it is read, but when its call begins. What is larger
/// may wait for its turn, and as much of it as there is room for.
const SMALL: usize = 16 << 10;

pub(super) struct Stream {
    /// Until its call begins.
    head: Option<Head>,
    arrival: Arrival,
    /// Whether the caller has said all.
    pub(super) is_done: bool,
    /// What the caller may still send, and what has been read since it was told so.
    pub(super) left: i64,
    pub(super) owed: usize,
    /// Of what the caller said it would send.
    expected: Option<u64>,
    /// What we may still send, beyond what there is room for on a new stream: where that changes, it changes
    /// for all streams, and none need be looked at.
    pub(super) room: i64,
    pub(super) tail: Option<Tail>,
}

/// What has arrived.
enum Arrival {
    /// Before the call begins.
    Early(BytesMut),
    /// For whom it goes on.
    Inbox(Arc<Inbox>),
    /// All of it was there when the call began.
    Over,
}

/// What is to be sent when there is room.
pub(super) struct Tail {
    pub(super) data: Bytes,
    pub(super) then: Then,
}

/// What follows.
pub(super) enum Then {
    /// More, of whom it is to be asked.
    More(Pouring),
    /// That the call went well.
    Well,
    Trailers(HeaderMap),
    Nothing,
}

impl Stream {
    pub(super) fn new(head: Head, left: i64) -> Self {
        let expected = head.length;
        let arrival = Arrival::Early(BytesMut::new());
        Self { head: Some(head), arrival, is_done: false, left, owed: 0, expected, room: 0, tail: None }
    }

    /// Takes another piece; false where it is more than was announced.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        if let Some(expected) = &mut self.expected {
            let Some(left) = expected.checked_sub(piece.len() as u64) else { return false };
            *expected = left;
        }
        match &mut self.arrival {
            Arrival::Early(early) => early.extend_from_slice(piece),
            Arrival::Inbox(inbox) => inbox.push(piece),
            Arrival::Over => {}
        }
        true
    }

    /// The caller has said all; false where it is less than was announced.
    pub(super) fn done(&mut self) -> bool {
        self.is_done = true;
        if let Arrival::Inbox(inbox) = &self.arrival {
            inbox.end(Ok(()));
        }
        self.expected.is_none_or(|left| left == 0)
    }

    /// What the call begins with; once. The bytes that have thereby been read come with it.
    pub(super) fn begin(&mut self, id: u32, ledger: &Ledger) -> Option<(Head, Received, usize)> {
        let head = self.head.take()?;
        let Arrival::Early(early) = &mut self.arrival else { return None };
        let early = std::mem::take(early);
        if self.is_done && early.len() <= SMALL {
            let body = early.freeze();
            let read = body.len();
            self.arrival = Arrival::Over;
            return Some((head, Received::whole(body), read));
        }
        let inbox = Inbox::new(id, ledger, early);
        if self.is_done {
            inbox.end(Ok(()));
        }
        self.arrival = Arrival::Inbox(Arc::clone(&inbox));
        Some((head, Received::pieces(inbox), 0))
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.head.is_none()
    }

    /// Its end, also for whoever still reads: how many bytes nobody will.
    pub(super) fn end(self) -> usize {
        match self.arrival {
            Arrival::Early(early) => early.len(),
            Arrival::Inbox(inbox) => {
                inbox.end(Err(Gone));
                inbox.clear();
                0
            }
            Arrival::Over => 0,
        }
    }
}
