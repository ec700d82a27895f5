//! One call on its connection, from its headers to the end of its answer.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::body::{BodyBuffer, ClientGone, ReadLedger, RequestBody};
use crate::in_flight::StreamingResponse;
use crate::request_headers::RequestHead;

/// All streams that have not ended.
pub(crate) type Streams = HashMap<u32, Stream, foldhash::fast::RandomState>;

/// The most bytes of a body whose credit is returned when its call begins. Larger ones wait until they are read.
const SMALL: usize = 16 << 10;

pub(crate) struct Stream {
    /// Until its call begins.
    head: Option<RequestHead>,
    received: ReceivedBody,
    /// Whether the client has sent END_STREAM.
    pub(crate) end_stream_received: bool,
    /// The stream's receive window, and the bytes that were consumed since the last WINDOW_UPDATE.
    pub(crate) recv_window: i64,
    pub(crate) pending_credit: usize,
    /// Bytes of the announced content-length that have not come.
    content_length: Option<u64>,
    /// The send window is `initial_send_window + send_window_delta`: when the initial window changes, it changes
    /// for all streams (RFC 9113, 6.9.2), and none need be visited.
    pub(crate) send_window_delta: i64,
    pub(crate) queued: Option<QueuedData>,
}

/// The body as far as it has come.
enum ReceivedBody {
    /// The call has not begun.
    Early(BytesMut),
    /// The call reads it from this buffer.
    Buffer(Arc<BodyBuffer>),
    /// It was complete when the call began.
    Complete,
}

/// Data that waits for a send window.
pub(crate) struct QueuedData {
    pub(crate) data: Bytes,
    pub(crate) then: AfterData,
}

/// What follows queued data.
pub(crate) enum AfterData {
    /// More of this response.
    More(StreamingResponse),
    /// Trailers with grpc-status 0.
    Ok,
    Trailers(HeaderMap),
    EndStream,
}

impl Stream {
    pub(crate) fn new(head: RequestHead, recv_window: i64) -> Self {
        let content_length = head.length;
        Self {
            head: Some(head),
            received: ReceivedBody::Early(BytesMut::new()),
            end_stream_received: false,
            recv_window,
            pending_credit: 0,
            content_length,
            send_window_delta: 0,
            queued: None,
        }
    }

    /// Takes a piece of the body; false if it is longer than its content-length.
    pub(crate) fn push(&mut self, piece: &[u8]) -> bool {
        if let Some(expected) = &mut self.content_length {
            let Some(missing) = expected.checked_sub(piece.len() as u64) else { return false };
            *expected = missing;
        }
        match &mut self.received {
            ReceivedBody::Early(early) => early.extend_from_slice(piece),
            ReceivedBody::Buffer(buffer) => buffer.push(piece),
            ReceivedBody::Complete => {}
        }
        true
    }

    /// Takes END_STREAM; false if the body is shorter than its content-length.
    pub(crate) fn end_of_body(&mut self) -> bool {
        self.end_stream_received = true;
        if let ReceivedBody::Buffer(buffer) = &self.received {
            buffer.end(Ok(()));
        }
        self.content_length.is_none_or(|missing| missing == 0)
    }

    /// What the call begins with, once; and how many bytes of the body count as consumed.
    pub(crate) fn begin(
        &mut self,
        id: u32,
        ledger: &ReadLedger,
    ) -> Option<(RequestHead, RequestBody, usize)> {
        let head = self.head.take()?;
        let ReceivedBody::Early(early) = &mut self.received else { return None };
        let early = std::mem::take(early);
        if self.end_stream_received && early.len() <= SMALL {
            let body = early.freeze();
            let consumed = body.len();
            self.received = ReceivedBody::Complete;
            return Some((head, RequestBody::whole(body), consumed));
        }
        let buffer = BodyBuffer::new(id, ledger, early);
        if self.end_stream_received {
            buffer.end(Ok(()));
        }
        self.received = ReceivedBody::Buffer(Arc::clone(&buffer));
        Some((head, RequestBody::pieces(buffer), 0))
    }

    pub(crate) const fn has_begun(&self) -> bool {
        self.head.is_none()
    }

    /// Ends the stream, also for a call that still reads. Returns the bytes that nobody will read.
    pub(crate) fn end(self) -> usize {
        match self.received {
            ReceivedBody::Early(early) => early.len(),
            ReceivedBody::Buffer(buffer) => {
                buffer.end(Err(ClientGone));
                buffer.clear();
                0
            }
            ReceivedBody::Complete => 0,
        }
    }
}
