//! Requests that were answered before their end (half-closed (local) in RFC 9113, 5.1).
//!
//! Such a request is read to its end, so that faults in the rest are found, and a client that ends it in time gets
//! no RST_STREAM. Bytes and time are bounded: at the bound RST_STREAM(NO_ERROR) tells the client that the rest is
//! not needed (8.1).

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::error_code::{ConnectionError, ErrorCode};
use crate::session::receive::LARGEST_WINDOW;
use crate::session::{GracefulShutdown, Session};
use crate::unread_request::UnreadRequest;

/// Bounds of the rest: bytes of the body, and time.
const MAX_REST: usize = 64 << 10;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// Bytes that one request counts in the buffer budget: its entries, rounded up.
const COUNTED: usize = 128;

/// The lingering requests of one connection. Together with the open streams they are at most `max_streams`.
#[derive(Default)]
pub(super) struct Lingering {
    requests: HashMap<u32, UnreadRequest, foldhash::fast::RandomState>,
    /// Deadlines, the oldest first. Some are of requests that have ended.
    times: VecDeque<(u32, Instant)>,
}

impl Lingering {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }
}

impl Session {
    /// Keeps reading a request that was answered. Once GOAWAY was sent or received, its stream is reset at once
    /// instead.
    pub(super) fn linger(&mut self, id: u32, request: UnreadRequest) {
        if self.shutdown != GracefulShutdown::No || self.goaway_received {
            return self.send_reset(id, ErrorCode::NoError);
        }
        let until = self.now() + LINGER_TIME;
        self.lingering.times.push_back((id, until));
        self.lingering.requests.insert(id, request);
        self.held_by_streams += COUNTED;
    }

    /// Ends all lingering requests, because the connection ends or has to free memory.
    pub(super) fn end_lingering(&mut self) {
        while self.end_oldest() {}
        self.lingering = Lingering::default();
    }

    /// Ends the oldest entry; false if there was none.
    fn end_oldest(&mut self) -> bool {
        let oldest = self.lingering.times.pop_front();
        if let Some((id, _)) = oldest
            && self.take_lingering(id).is_some()
        {
            self.send_reset(id, ErrorCode::NoError);
        }
        oldest.is_some()
    }

    /// Returns the deadline of the oldest lingering request.
    pub(crate) fn lingering_due(&mut self) -> Option<Instant> {
        while let Some((id, until)) = self.lingering.times.front() {
            if self.lingering.requests.contains_key(id) {
                return Some(*until);
            }
            self.lingering.times.pop_front();
        }
        None
    }

    /// Ends the requests that are past their deadlines.
    pub(crate) fn end_late_requests(&mut self, now: Instant) {
        while self.lingering_due().is_some_and(|due| due <= now) {
            self.end_oldest();
        }
    }

    /// Handles DATA on a stream that is not open; false if it belongs to no lingering request.
    pub(super) fn rest_of_body(&mut self, id: u32, bytes: usize, end: bool) -> Result<bool, ConnectionError> {
        let Some(request) = self.lingering.requests.get_mut(&id) else {
            return Ok(false);
        };
        request.read += bytes;
        let valid = request.take(bytes) && (!end || request.is_complete());
        if valid && !end && request.read <= MAX_REST {
            return Ok(true);
        }
        if !valid {
            self.reset(id, ErrorCode::Protocol)?;
        } else if !end {
            self.send_reset(id, ErrorCode::NoError);
        }
        self.take_lingering(id);
        Ok(true)
    }

    /// Handles trailers on a stream that is not open; false if they belong to no lingering request.
    pub(super) fn rest_of_headers(&mut self, id: u32, valid: bool) -> Result<bool, ConnectionError> {
        let Some(request) = self.take_lingering(id) else { return Ok(false) };
        if !valid || !request.is_complete() {
            self.reset(id, ErrorCode::Protocol)?;
        }
        Ok(true)
    }

    /// Handles WINDOW_UPDATE on a stream that is not open.
    pub(super) fn unused_credit_of(&mut self, id: u32, increment: i64) -> Result<(), ConnectionError> {
        let Some(request) = self.lingering.requests.get_mut(&id) else {
            return Ok(());
        };
        request.send_window_delta += increment;
        let is_too_large = self.initial_send_window + request.send_window_delta > LARGEST_WINDOW;
        if increment > 0 && !is_too_large {
            return Ok(());
        }
        self.reset(id, if increment == 0 { ErrorCode::Protocol } else { ErrorCode::FlowControl })
    }

    pub(super) fn take_lingering(&mut self, id: u32) -> Option<UnreadRequest> {
        let request = self.lingering.requests.remove(&id)?;
        self.held_by_streams -= COUNTED;
        Some(request)
    }
}
