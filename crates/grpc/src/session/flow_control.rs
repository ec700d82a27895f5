//! Receive windows: bytes that were consumed may be sent again (RFC 9113, 6.9).

use crate::frames::{self, kind};
use crate::session::{CONNECTION_WINDOW, KEPT_STREAMS, STREAM_WINDOW, Session};
use crate::stream::Streams;

impl Session {
    /// Returns credit for bytes of the connection that are consumed.
    pub(super) fn return_bytes(&mut self, bytes: usize) {
        self.pending_credit += bytes;
        if self.pending_credit >= CONNECTION_WINDOW as usize / 2 {
            let increment = std::mem::take(&mut self.pending_credit) as u32;
            self.recv_window += i64::from(increment);
            frames::write(&mut self.output, kind::WINDOW_UPDATE, 0, 0, &increment.to_be_bytes());
        }
    }

    /// Returns credit for what the services have read since the last call.
    pub(crate) fn return_credit(&mut self) {
        for (stream, bytes) in self.ledger.take() {
            self.return_stream_bytes(stream, bytes);
        }
        if self.streams.is_empty() && self.streams.capacity() > KEPT_STREAMS {
            self.streams = Streams::default();
        }
    }

    /// Returns credit for bytes of a stream that are consumed, on the stream and on the connection.
    pub(super) fn return_stream_bytes(&mut self, id: u32, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.return_bytes(bytes);
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.end_stream_received) else {
            return;
        };
        stream.pending_credit += bytes;
        if stream.pending_credit >= STREAM_WINDOW as usize / 2 {
            let increment = std::mem::take(&mut stream.pending_credit) as u32;
            stream.recv_window += i64::from(increment);
            frames::write(&mut self.output, kind::WINDOW_UPDATE, 0, id, &increment.to_be_bytes());
        }
    }
}
