//! A header block whose CONTINUATION frames have not all arrived (RFC 9113, 4.3 and 6.10).
//!
//! HPACK needs every block to its end. So a block that is too large for any call is still read, up to a bound, and
//! only its call ends. Until it is complete, it counts in the buffer budget.

use crate::budget::Account;
use crate::error_code::{ConnectionError, ErrorCode};
use crate::events::ConnectionEvent;
use crate::frames::{HEAD, LARGEST_PAYLOAD};
use crate::session::Session;

/// Bound of a block in bytes; twice `max_header_bytes` where that is more.
pub(crate) const MAX_HEADER_BLOCK: usize = 256 << 10;

const TOO_LARGE: &str =
    "it sent a header block of more than 256 KiB, or of more than twice max_header_bytes where that is more";

/// The stream id that stands for the block in [`Session`]'s `unreserved`: no request has it.
pub(super) const HEADER_BLOCK: u32 = 0;

pub(super) struct HeaderBlock {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    pub(super) depends_on_itself: bool,
    pub(super) bytes: Vec<u8>,
    /// Bytes of its frames including the headers of CONTINUATION frames, whose payloads may be empty.
    received: usize,
    /// Bytes that it counts in the buffer budget.
    counted: usize,
}

impl Session {
    /// Keeps the first part of a block.
    pub(super) fn begin_block(
        &mut self,
        stream: u32,
        end_stream: bool,
        depends_on_itself: bool,
        bytes: &[u8],
    ) {
        let (received, bytes) = (bytes.len(), bytes.to_vec());
        self.header_block =
            Some(HeaderBlock { stream, end_stream, depends_on_itself, bytes, received, counted: 0 });
        self.unreserved.push(HEADER_BLOCK);
    }

    /// Appends a CONTINUATION. Returns the block if it is complete.
    pub(super) fn continue_block(
        &mut self,
        stream: u32,
        bytes: &[u8],
        end: bool,
    ) -> Result<Option<HeaderBlock>, ConnectionError> {
        let Some(block) = self.header_block.as_mut().filter(|block| block.stream == stream) else {
            return Err(ConnectionError::protocol("it sent a CONTINUATION of nothing"));
        };
        block.bytes.extend_from_slice(bytes);
        block.received += HEAD + bytes.len();
        let most = (self.limits.max_header_bytes as usize).saturating_mul(2).max(MAX_HEADER_BLOCK);
        if block.received > most {
            return Err(self.flood(TOO_LARGE));
        }
        if !end {
            self.unreserved.push(HEADER_BLOCK);
            return Ok(None);
        }
        let block = self.header_block.take();
        self.held_by_streams -= block.as_ref().map_or(0, |block| block.counted);
        Ok(block)
    }

    /// Counts an incomplete block in the budget. Without space the connection ends: later blocks cannot be decoded
    /// without this one.
    pub(super) fn reserve_block(&mut self, account: &mut Account) -> Result<(), ConnectionError> {
        let Some(block) = &self.header_block else { return Ok(()) };
        // One frame is not counted, as the incomplete frame of any connection is not.
        let size = block.bytes.capacity().saturating_sub(LARGEST_PAYLOAD);
        let more = size - block.counted;
        account.set_exactly(self.held());
        if !self.grow(account, more) {
            return Err(self.no_space_for_block());
        }
        if let Some(block) = &mut self.header_block {
            block.counted = size;
            self.held_by_streams += more;
        }
        Ok(())
    }

    /// Returns the bytes that the block counts.
    pub(super) fn held_by_block(&self) -> usize {
        self.header_block.as_ref().map_or(0, |block| block.counted)
    }

    /// Returns the connection error for a block that has to be freed.
    pub(super) fn no_space_for_block(&self) -> ConnectionError {
        const FULL: &str = "the buffer budget is full: a header block";
        self.observer.observe(ConnectionEvent::BudgetRefusal, FULL);
        ConnectionError::new(ErrorCode::EnhanceYourCalm, FULL)
    }
}
