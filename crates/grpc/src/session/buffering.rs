//! The memory that a connection holds for its client, and what it frees when the buffer budget is full.
//!
//! A message that is incomplete at the end of a turn needs a reservation in the buffer budget. With a reservation
//! the client gets credit for the whole message; without one it gets none. No message waits for space: when the
//! budget is full, some call is ended (see [`crate::budget`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tonic::Status;

use crate::budget::{Account, Full, no_space};
use crate::error_code::{ConnectionError, ErrorCode};
use crate::events::ConnectionEvent;
use crate::inflate::Inflater;
use crate::reading_time::ReadingTime;
use crate::session::Session;
use crate::session::header_block::HEADER_BLOCK;

/// Time in which a message must arrive. It runs only while its client may send it and the connection is read.
pub const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A message that was incomplete at the end of a turn.
pub(super) struct PartialMessage {
    stream: u32,
    /// Offset of the message in the body plus one, which identifies the message.
    listed: u64,
    /// The connection's [`ReadingTime`] when the message was found incomplete.
    since: Duration,
}

impl Session {
    /// Updates the count of bytes that a stream holds.
    #[inline]
    pub(super) fn recount(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            self.held_by_streams = self.held_by_streams - stream.counted + stream.count();
        }
    }

    /// Ends a turn: reserves space for incomplete messages, and updates the account. `reading` is the connection's
    /// reading time, and `demanded` the bytes that other connections demand of it.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        account: &mut Account,
        reading: &ReadingTime,
        demanded: usize,
    ) -> Result<(), ConnectionError> {
        if demanded > 0 {
            self.give(account, demanded)?;
        }
        if !self.unreserved.is_empty() {
            self.reserve_all(account, reading)?;
        }
        let held = self.held();
        // Only incomplete messages and silent calls can be ended here; the search for the largest holder is skipped
        // without them.
        let has_silent = !(self.partial_messages.is_empty() && self.open_calls.has_none_silent());
        if has_silent && held > account.held() && account.grow(held - account.held()).is_err() {
            self.end_silent_calls(account);
        }
        account.set_exactly(self.held());
        Ok(())
    }

    fn reserve_all(&mut self, account: &mut Account, reading: &ReadingTime) -> Result<(), ConnectionError> {
        let reading = reading.total(self.now());
        let mut unreserved = std::mem::take(&mut self.unreserved);
        let mut has_block = false;
        for id in unreserved.drain(..) {
            has_block |= id == HEADER_BLOCK;
            self.reserve(account, id, reading);
        }
        self.unreserved = unreserved;
        if has_block { self.reserve_block(account) } else { Ok(()) }
    }

    /// Returns the bytes held for calls, messages, metadata and unsent responses.
    pub(super) fn held(&self) -> usize {
        self.held_by_streams + self.queued_bytes + self.output.len()
    }

    fn reserve(&mut self, account: &mut Account, id: u32, reading: Duration) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.framing.is_partial() {
            if stream.awaits_first_message() {
                self.await_first_message(id, reading);
            }
            return;
        }
        let listed = stream.framing.complete() + 1;
        let needed = stream.needs_reservation();
        if (needed.is_some() || stream.framing.announced().is_none()) && stream.listed != listed {
            stream.listed = listed;
            self.partial_messages.push_back(PartialMessage { stream: id, listed, since: reading });
            self.forget_complete_messages();
        }
        let Some(needed) = needed else { return };
        account.set_exactly(self.held());
        if !self.grow(account, needed) {
            self.observer.observe(ConnectionEvent::BudgetRefusal, "the buffer budget is full");
            self.fail_without_space(id);
            return;
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.reserved = needed;
            self.recount(id);
            self.return_stream_credit(id);
            self.send_credit_now(id);
        }
    }

    /// Reserves bytes in the budget. If this connection holds most, it ends other calls for them.
    pub(super) fn grow(&mut self, account: &mut Account, needed: usize) -> bool {
        while let Err(full) = account.grow(needed) {
            if full == Full::Exhausted || self.give_once().is_none() {
                return false;
            }
            account.set_exactly(self.held());
        }
        true
    }

    /// Frees at least `demanded` bytes, or all that the connection can free.
    fn give(&mut self, account: &Account, demanded: usize) -> Result<(), ConnectionError> {
        let before = self.held();
        self.end_lingering();
        let mut given = before.saturating_sub(self.held());
        while given < demanded
            && let Some(bytes) = self.give_once()
        {
            given += bytes.max(1);
        }
        if given < demanded {
            given += self.end_open_calls(demanded - given);
        }
        if given < demanded && self.held_by_block() > 0 {
            return Err(self.no_space_for_block());
        }
        account.has_given(if given < demanded { usize::MAX } else { given });
        Ok(())
    }

    /// Ends the call with the oldest incomplete message, or else resets the stream with the most unsent bytes.
    /// Returns the bytes that this has freed.
    fn give_once(&mut self) -> Option<usize> {
        let before = self.held();
        let oldest = self.partial_messages.iter().find(|message| self.is_reserved(message));
        if let Some(stream) = oldest.map(|message| message.stream) {
            self.observer
                .observe(ConnectionEvent::BudgetRefusal, "the buffer budget is full: an incomplete message");
            self.fail_without_space(stream);
        } else {
            let unsent = self
                .streams
                .iter()
                .filter_map(|(id, stream)| Some((stream.queued.as_ref()?.data.len(), *id)));
            let (_, stream) = unsent.max().filter(|(bytes, _)| *bytes > 0)?;
            self.observer
                .observe(ConnectionEvent::BudgetRefusal, "the buffer budget is full: an unsent answer");
            self.send_reset(stream, ErrorCode::EnhanceYourCalm);
            self.cancel_stream(stream);
        }
        Some(before.saturating_sub(self.held()))
    }

    fn is_reserved(&self, message: &PartialMessage) -> bool {
        self.current(message).is_some_and(|stream| stream.reserved > 0)
    }

    /// Returns the stream of a message that is still incomplete.
    fn current(&self, message: &PartialMessage) -> Option<&crate::stream::CallStream> {
        let stream = self.streams.get(&message.stream)?;
        (stream.framing.is_partial() && stream.framing.complete() + 1 == message.listed).then_some(stream)
    }

    /// Removes the entries of messages that are complete.
    fn forget_complete_messages(&mut self) {
        while let Some(first) = self.partial_messages.front()
            && self.current(first).is_none()
        {
            self.partial_messages.pop_front();
        }
        if self.partial_messages.len() > 2 * self.streams.len() + 8 {
            let messages = std::mem::take(&mut self.partial_messages);
            self.partial_messages =
                messages.into_iter().filter(|message| self.current(message).is_some()).collect();
        }
    }

    /// Returns the earliest deadline of an incomplete message or a first message, in reading time of the
    /// connection.
    pub(crate) fn message_due(&mut self) -> Option<Duration> {
        self.forget_complete_messages();
        let message = self.partial_messages.front().map(|message| message.since + MESSAGE_TIMEOUT);
        message.into_iter().chain(self.first_message_due()).min()
    }

    /// Ends the calls whose messages are past their deadlines.
    pub(crate) fn end_late_messages(&mut self, reading: Duration) {
        self.end_late_calls(reading);
        loop {
            self.forget_complete_messages();
            let is_late = |message: &PartialMessage| message.since + MESSAGE_TIMEOUT <= reading;
            if !self.partial_messages.front().is_some_and(is_late) {
                return;
            }
            let Some(late) = self.partial_messages.pop_front() else { return };
            self.observer.observe(ConnectionEvent::MessageTimeout, "a message did not arrive in time");
            let seconds = MESSAGE_TIMEOUT.as_secs();
            self.fail(
                late.stream,
                Status::deadline_exceeded(format!("the message did not arrive within {seconds} seconds")),
            );
        }
    }

    /// Ends a call because the budget is full, and all lingering requests with it.
    pub(super) fn fail_without_space(&mut self, id: u32) {
        self.fail(id, no_space());
        self.end_lingering();
    }

    /// Ends a call with an error, in whatever state it is.
    pub(super) fn fail(&mut self, id: u32, status: Status) {
        let Some(stream) = self.streams.get(&id) else { return };
        if stream.has_begun() {
            self.cancelled.push(id);
        }
        if stream.response_begun {
            self.fail_response(id, &status);
        } else {
            self.answer(id, Err(status));
        }
    }

    /// Creates the decompressor of a compressed body.
    pub(crate) fn inflater(&self, largest: usize, account: &Account) -> Inflater {
        Inflater::new(largest, account.budget().clone(), Arc::clone(&self.observer))
    }

    /// Returns the time of this turn: the clock is read once per turn.
    #[inline]
    pub(crate) fn now(&mut self) -> Instant {
        *self.now.get_or_insert_with(weir_time::clock::monotonic)
    }

    pub(crate) fn begin_turn(&mut self) {
        self.now = None;
    }
}
