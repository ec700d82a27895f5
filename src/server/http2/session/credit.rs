//! What the peer may send: what has been read of it, or dropped, may be sent again.

use super::super::stream::Streams;
use super::{CONNECTION_WINDOW, KEPT_STREAMS, STREAM_WINDOW, Session};
use crate::http2::frames::{self, kind};

impl Session {
    /// So many bytes need no place any more.
    pub(super) fn has_read(&mut self, bytes: usize) {
        self.owed += bytes;
        if self.owed >= CONNECTION_WINDOW as usize / 2 {
            let more = std::mem::take(&mut self.owed) as u32;
            self.left += i64::from(more);
            frames::write(&mut self.out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
    }

    /// What the services have read meanwhile may be sent again.
    pub(in crate::server::http2) fn settle(&mut self) {
        for (stream, bytes) in self.ledger.take() {
            self.has_read_of(stream, bytes);
        }
        if self.streams.is_empty() && self.streams.capacity() > KEPT_STREAMS {
            self.streams = Streams::default();
        }
    }

    /// So many bytes of a stream, which may be sent again on it too.
    pub(super) fn has_read_of(&mut self, id: u32, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.has_read(bytes);
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.is_done) else { return };
        stream.owed += bytes;
        if stream.owed >= STREAM_WINDOW as usize / 2 {
            let more = std::mem::take(&mut stream.owed) as u32;
            stream.left += i64::from(more);
            frames::write(&mut self.out, kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
        }
    }
}
