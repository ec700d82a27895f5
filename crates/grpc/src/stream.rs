//! The state of one call on its connection, from its headers to the end of its response.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::body::{BodyBuffer, ClientGone, ReadLedger, RequestBody};
use crate::framing::MessageFraming;
use crate::in_flight::StreamingResponse;
use crate::open_streams::OpenStream;
use crate::request_headers::RequestHead;
use crate::service::{CallKind, MethodTraits};
use crate::unread_request::UnreadRequest;

/// The open streams of a connection.
pub(crate) type Streams = HashMap<u32, CallStream, foldhash::fast::RandomState>;

pub(crate) struct CallStream {
    /// The headers, until the call begins.
    head: Option<RequestHead>,
    received: ReceivedBody,
    pub(crate) framing: MessageFraming,
    /// The largest message that its method takes, in bytes.
    largest_message: usize,
    /// True if messages are decided one by one, so that each is held until it is read. Otherwise the whole body is
    /// held until the call is answered.
    by_message: bool,
    /// Bytes of the body that the service has read.
    consumed: u64,
    /// Offset in the body up to which the client has credit, returned or given in advance.
    credited: u64,
    /// Bytes of the buffer budget that are reserved for an incomplete message.
    pub(crate) reserved: usize,
    /// Bytes of the headers that are kept.
    metadata: usize,
    /// Memory of the call itself in bytes: now, and once it has begun.
    pub(crate) call_bytes: usize,
    pub(crate) begun_bytes: usize,
    pub(crate) kind: CallKind,
    /// Slot among the process's open streams, if the method is streaming.
    _open: Option<OpenStream>,
    /// The value of [`CallStream::held`] when the session last counted it.
    pub(crate) counted: usize,
    /// Offset plus one of the message that was last put on the list of incomplete messages; 0 if there was none.
    pub(crate) listed: u64,
    /// True once the response has begun.
    pub(crate) response_begun: bool,
    /// True once the client has sent END_STREAM.
    pub(crate) end_stream_received: bool,
    /// The stream's receive window, and the bytes consumed since the last WINDOW_UPDATE.
    pub(crate) recv_window: i64,
    pub(crate) pending_credit: usize,
    /// Bytes missing of the content-length.
    content_length: Option<u64>,
    /// The send window is `initial_send_window + send_window_delta`. So a new initial window applies to all streams
    /// (RFC 9113, 6.9.2) without a visit to each.
    pub(crate) send_window_delta: i64,
    pub(crate) queued: Option<QueuedData>,
}

/// The received part of the body.
enum ReceivedBody {
    /// The call has not begun.
    Early(BytesMut),
    /// The call reads the body from this buffer.
    Buffer(Arc<BodyBuffer>),
    /// The body was complete when the call began.
    Complete,
}

/// Data that waits for a send window.
pub(crate) struct QueuedData {
    pub(crate) data: Bytes,
    pub(crate) then: AfterData,
}

/// The rest of the response after queued data.
pub(crate) enum AfterData {
    /// Further frames of the body.
    More(StreamingResponse),
    /// Trailers with grpc-status 0.
    Ok,
    /// Boxed: they are rare, and each open call has room for the largest variant.
    Trailers(Box<HeaderMap>),
    EndStream,
}

impl CallStream {
    pub(crate) fn new(
        head: RequestHead,
        recv_window: i64,
        method: MethodTraits,
        open: Option<OpenStream>,
    ) -> Self {
        let MethodTraits { largest_message, by_message, kind, bytes, bytes_before } = method;
        let (content_length, metadata) = (head.length, head.kept().bytes());
        let framing = MessageFraming::new(head.is_gzip());
        Self {
            head: Some(head),
            received: ReceivedBody::Early(BytesMut::new()),
            framing,
            largest_message,
            by_message,
            consumed: 0,
            credited: 0,
            reserved: 0,
            metadata,
            call_bytes: bytes_before,
            begun_bytes: bytes,
            kind,
            _open: open,
            counted: 0,
            listed: 0,
            response_begun: false,
            end_stream_received: false,
            recv_window,
            pending_credit: 0,
            content_length,
            send_window_delta: 0,
            queued: None,
        }
    }

    /// Appends received bytes of the body; false if it exceeds its content-length.
    pub(crate) fn push(&mut self, piece: &[u8]) -> bool {
        if let Some(expected) = &mut self.content_length {
            let Some(missing) = expected.checked_sub(piece.len() as u64) else { return false };
            *expected = missing;
        }
        self.framing.push(piece, self.largest_message);
        if self.reserved > 0 && self.framing.announced() != Some(self.reserved) {
            // The reserved message is complete. From now on it counts with its own bytes.
            self.reserved = 0;
        }
        match &mut self.received {
            ReceivedBody::Early(early) => early.extend_from_slice(piece),
            ReceivedBody::Buffer(buffer) => buffer.push(piece),
            ReceivedBody::Complete => {}
        }
        true
    }

    /// Handles END_STREAM; false if the body is shorter than its content-length.
    pub(crate) fn end_of_body(&mut self) -> bool {
        self.end_stream_received = true;
        if let ReceivedBody::Buffer(buffer) = &self.received {
            buffer.end(Ok(()));
        }
        self.content_length.is_none_or(|missing| missing == 0)
    }

    /// Returns the headers and the body for the call to begin with; `None` once it has begun.
    pub(crate) fn begin(&mut self, id: u32, ledger: &ReadLedger) -> Option<(RequestHead, RequestBody)> {
        let head = self.head.take()?;
        let ReceivedBody::Early(early) = &mut self.received else { return None };
        let early = std::mem::take(early);
        // A message of a streaming call may be held until it is decided, so its bytes are not consumed yet.
        if self.end_stream_received && !self.by_message {
            self.consumed = self.framing.received();
            self.received = ReceivedBody::Complete;
            return Some((head, RequestBody::whole(early.freeze())));
        }
        let buffer = BodyBuffer::new(id, ledger, early);
        if self.end_stream_received {
            buffer.end(Ok(()));
        }
        self.received = ReceivedBody::Buffer(Arc::clone(&buffer));
        Some((head, RequestBody::pieces(buffer)))
    }

    pub(crate) const fn has_begun(&self) -> bool {
        self.head.is_none()
    }

    /// Counts bytes that the service has read.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes as u64;
    }

    /// Returns the credit that is due. Bytes of an incomplete message return none unless it has a reservation. With
    /// one, the client gets the credit for the whole message at once.
    pub(crate) fn take_credit(&mut self) -> usize {
        let mut target = self.consumed.min(self.framing.complete());
        if self.reserved > 0 {
            target = target.max(self.framing.complete() + self.reserved as u64);
        }
        let credit = target.saturating_sub(self.credited);
        self.credited += credit;
        usize::try_from(credit).unwrap_or(usize::MAX)
    }

    /// Returns the length of an incomplete message that needs a reservation. A message behind unread ones waits for
    /// these, without credit.
    pub(crate) fn needs_reservation(&self) -> Option<usize> {
        let next = self.consumed >= self.framing.complete();
        self.framing.announced().filter(|_| next && self.reserved == 0 && !self.end_stream_received)
    }

    /// Returns the bytes that count in the buffer budget.
    pub(crate) fn held(&self) -> usize {
        let complete = self.framing.complete();
        let decided = if self.by_message { self.consumed.min(complete) } else { 0 };
        let messages = usize::try_from(complete - decided).unwrap_or(usize::MAX);
        messages + self.reserved + self.metadata + self.call_bytes
    }

    /// Updates the counted bytes and returns them.
    #[inline]
    pub(crate) fn count(&mut self) -> usize {
        self.counted = self.held();
        self.counted
    }

    /// True while no message is complete and the client may still send one.
    #[inline]
    pub(crate) const fn awaits_first_message(&self) -> bool {
        self.framing.complete() == 0 && !self.end_stream_received
    }

    /// Returns the rest of the request if the client has not finished it.
    #[inline]
    pub(crate) fn unread_request(&self) -> Option<UnreadRequest> {
        let unread = || UnreadRequest::new(self.content_length, self.send_window_delta);
        (!self.end_stream_received).then(unread)
    }

    /// Ends the stream, also for a call that still reads. Returns the credit that is due for bytes that will not be
    /// read, and the credit given in advance for bytes that have not arrived.
    pub(crate) fn end(&self) -> (u64, u64) {
        let received = self.framing.received();
        if let ReceivedBody::Buffer(buffer) = &self.received {
            buffer.end(Err(ClientGone));
            buffer.clear();
        }
        (received.saturating_sub(self.credited), self.credited.saturating_sub(received))
    }
}

impl Drop for ReceivedBody {
    /// Ends the body: a reader outside the connection, such as a task of its own, would wait forever for it after
    /// the connection has ended.
    fn drop(&mut self) {
        if let Self::Buffer(buffer) = self {
            buffer.end(Err(ClientGone));
        }
    }
}
