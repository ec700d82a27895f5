//! Recently reset streams. Frames for them may still be in flight (RFC 9113, 5.1).

use std::collections::VecDeque;

use crate::error_code::{ConnectionError, ErrorCode};
use crate::frames::{Frame, flag};
use crate::session::Session;

/// The ids of the last reset streams. Beyond `limit` the oldest are forgotten.
pub(super) struct RecentStreams {
    ids: VecDeque<u32>,
    limit: usize,
}

impl RecentStreams {
    pub(super) const fn new(limit: usize) -> Self {
        Self { ids: VecDeque::new(), limit }
    }

    pub(super) fn remember(&mut self, id: u32) {
        if self.ids.len() >= self.limit {
            self.ids.pop_front();
        }
        self.ids.push_back(id);
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// Forgets a stream; false if it was not known.
    pub(super) fn forget(&mut self, id: u32) -> bool {
        let place = self.ids.iter().position(|known| *known == id);
        place.is_some_and(|place| self.ids.remove(place).is_some())
    }
}

impl Session {
    /// Handles HEADERS on a stream that is closed.
    pub(super) fn headers_of_ended(&mut self, id: u32, valid: bool) -> Result<(), ConnectionError> {
        if self.rest_of_headers(id, valid)? || self.reset_streams.contains(id) || self.is_cancelled(id) {
            return Ok(());
        }
        Err(ConnectionError::new(ErrorCode::StreamClosed, "it sent headers on a stream that has ended"))
    }

    /// True if the client has reset this stream. Its late frame is a stream error (RFC 9113, 5.1), and those behind
    /// it are ignored.
    fn is_cancelled(&mut self, id: u32) -> bool {
        let is_known = self.cancelled_streams.forget(id);
        if is_known {
            self.send_reset(id, ErrorCode::StreamClosed);
        }
        is_known
    }

    /// Handles DATA on a stream that is closed.
    pub(super) fn data_of_ended(&mut self, frame: &Frame<'_>, bytes: usize) -> Result<(), ConnectionError> {
        let id = frame.stream;
        // Streams above the last stream of our GOAWAY are ignored.
        if id > self.last_stream_id
            || self.rest_of_body(id, bytes, frame.has(flag::END_STREAM))?
            || self.reset_streams.contains(id)
            || self.is_cancelled(id)
        {
            return Ok(());
        }
        self.reset(id, ErrorCode::StreamClosed)
    }
}
