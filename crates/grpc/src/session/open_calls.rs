//! Bounds of open calls: the number of streams, the time to the first message, and memory.
//!
//! A call counts in the buffer budget from its headers on. One that takes more memory than a plain call reserves it
//! before it begins. When the budget is full, calls without a first message are ended, the newest first, and on the
//! connection that holds most also streams.

use std::collections::VecDeque;
use std::time::Duration;

use tonic::Status;

use crate::budget::{Account, no_space};
use crate::events::ConnectionEvent;
use crate::open_streams::{OpenStream, OpenStreams, StreamBound};
use crate::service::CallKind;
use crate::session::Session;
use crate::stream::CallStream;

/// Open calls that a connection may have while the budget is full, although their messages have not followed their
/// headers. So a client with few calls is served no matter what others hold.
pub const FEW_CALLS: usize = 16;

pub(super) struct OpenCalls {
    /// The process-wide count of open streams.
    streams: OpenStreams,
    side_streams: usize,
    /// Calls without a byte of a message when they were listed, the oldest first.
    silent: VecDeque<SilentCall>,
}

struct SilentCall {
    stream: u32,
    /// The connection's reading time when the call was noticed.
    since: Duration,
}

impl OpenCalls {
    pub(super) fn new(streams: OpenStreams) -> Self {
        Self { streams, side_streams: 0, silent: VecDeque::new() }
    }

    #[cfg(test)]
    pub(super) fn streams(&self) -> OpenStreams {
        self.streams.clone()
    }

    /// Counts a call of a streaming method, or returns the bound that refuses it.
    #[inline]
    pub(super) fn begin(
        &mut self,
        kind: CallKind,
        max_side_streams: usize,
    ) -> Result<Option<OpenStream>, StreamBound> {
        if !kind.is_stream() {
            return Ok(None);
        }
        if kind == CallKind::SideStream && self.side_streams >= max_side_streams {
            return Err(StreamBound::Side);
        }
        let open = self.streams.open().ok_or(StreamBound::Open)?;
        self.side_streams += usize::from(kind == CallKind::SideStream);
        Ok(Some(open))
    }

    /// Uncounts a call of this kind that has ended.
    #[inline]
    pub(super) fn ended(&mut self, kind: CallKind) {
        self.side_streams -= usize::from(kind == CallKind::SideStream);
    }

    pub(super) fn has_none_silent(&self) -> bool {
        self.silent.is_empty()
    }

    pub(super) fn shrink(&mut self) {
        self.silent = VecDeque::new();
    }
}

impl Session {
    /// Answers a call that a bound of streams has refused.
    pub(super) fn refuse_stream(&mut self, id: u32, end_stream: bool, bound: StreamBound) {
        self.observer.observe(ConnectionEvent::StreamRefusal(bound), "as many streams are open as may be");
        let limit = match bound {
            StreamBound::Side => self.limits.max_side_streams,
            StreamBound::Open => self.open_calls.streams.limit(),
        };
        let (head, ()) = bound.refusal(limit).into_http().into_parts();
        self.refuse(id, end_stream, head.status, &head.headers);
    }

    /// Reserves the memory that a call takes once it has begun, or returns the status that refuses it.
    pub(crate) fn admit(&mut self, account: &mut Account, id: u32) -> Result<(), Status> {
        let Some(stream) = self.streams.get(&id) else { return Ok(()) };
        let (call_bytes, begun_bytes) = (stream.call_bytes, stream.begun_bytes);
        account.set_exactly(self.held());
        if account.grow(begun_bytes.saturating_sub(call_bytes)).is_err() {
            self.observer.observe(ConnectionEvent::BudgetRefusal, "the buffer budget is full: a call");
            return Err(no_space());
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.call_bytes = begun_bytes;
            self.recount(id);
        }
        Ok(())
    }

    /// Records a call that has begun without a byte of a message.
    pub(super) fn await_first_message(&mut self, id: u32, reading: Duration) {
        self.open_calls.silent.push_back(SilentCall { stream: id, since: reading });
        self.forget_begun_messages();
        if self.open_calls.silent.len() > 2 * self.streams.len() + 8 {
            let silent = std::mem::take(&mut self.open_calls.silent);
            self.open_calls.silent = silent.into_iter().filter(|call| self.is_silent(call)).collect();
        }
    }

    fn forget_begun_messages(&mut self) {
        while let Some(first) = self.open_calls.silent.front()
            && !self.is_silent(first)
        {
            self.open_calls.silent.pop_front();
        }
    }

    fn is_silent(&self, call: &SilentCall) -> bool {
        let is_silent = |stream: &CallStream| stream.awaits_first_message() && !stream.framing.is_partial();
        self.streams.get(&call.stream).is_some_and(is_silent)
    }

    /// Returns the deadline for the first message of the oldest silent call, in reading time.
    pub(super) fn first_message_due(&mut self) -> Option<Duration> {
        self.forget_begun_messages();
        self.open_calls.silent.front().map(|call| call.since + self.limits.first_message_timeout)
    }

    /// Ends the calls whose first messages have not begun to arrive by their deadlines.
    pub(super) fn end_late_calls(&mut self, reading: Duration) {
        while self.first_message_due().is_some_and(|due| due <= reading) {
            let Some(late) = self.open_calls.silent.pop_front() else { return };
            self.observer.observe(ConnectionEvent::MessageTimeout, "a first message did not arrive in time");
            let timeout = self.limits.first_message_timeout;
            self.fail(
                late.stream,
                Status::deadline_exceeded(format!(
                    "first_message_timeout: the first message did not arrive within {timeout:?}"
                )),
            );
        }
    }

    /// Ends calls without a first message, the newest first, until the held bytes fit the budget. A connection with
    /// at most [`FEW_CALLS`] calls keeps them.
    pub(super) fn end_silent_calls(&mut self, account: &mut Account) {
        if self.streams.len() <= FEW_CALLS {
            return;
        }
        for id in self.newest_first(has_nothing_to_lose) {
            self.end_for_space(id);
            let held = self.held();
            if held <= account.held() || account.grow(held - account.held()).is_ok() {
                return;
            }
        }
    }

    /// Ends calls without a first message and then streams, the newest first, until `demanded` bytes are freed.
    /// Returns the bytes that were freed.
    pub(super) fn end_open_calls(&mut self, demanded: usize) -> usize {
        let before = self.held();
        let silent = self.newest_first(has_nothing_to_lose);
        let streams = self.newest_first(|stream| stream.kind.is_stream() && !has_nothing_to_lose(stream));
        for id in silent.into_iter().chain(streams) {
            if before.saturating_sub(self.held()) >= demanded {
                break;
            }
            self.end_for_space(id);
        }
        before.saturating_sub(self.held())
    }

    fn newest_first(&self, is_meant: impl Fn(&CallStream) -> bool) -> Vec<u32> {
        let meant = self.streams.iter().filter(|(_, stream)| is_meant(stream));
        let mut ids: Vec<u32> = meant.map(|(id, _)| *id).collect();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids
    }

    fn end_for_space(&mut self, id: u32) {
        self.observer.observe(ConnectionEvent::BudgetRefusal, "the buffer budget is full: an open call");
        self.fail_without_space(id);
    }
}

/// True if no message of the call has arrived whole, and none has a reservation.
const fn has_nothing_to_lose(stream: &CallStream) -> bool {
    stream.awaits_first_message() && stream.reserved == 0
}
