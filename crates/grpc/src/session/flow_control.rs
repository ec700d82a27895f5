//! Receive windows (RFC 9113, 6.9): the client gets credit for consumed bytes and for reserved space.

use crate::frames::{self, kind};
use crate::session::{CONNECTION_WINDOW, STREAM_WINDOW, Session};
use crate::stream::Streams;

impl Session {
    /// Gives the client credit on the connection. Unused credit that was given in advance is deducted first.
    pub(super) fn return_bytes(&mut self, bytes: usize) {
        let unused = bytes.min(self.unused_credit);
        self.unused_credit -= unused;
        self.pending_credit += bytes - unused;
        if self.pending_credit >= CONNECTION_WINDOW as usize / 2 {
            self.send_connection_credit();
        }
    }

    /// Takes the counts of bytes that the services have read, and gives the client credit for them.
    pub(crate) fn return_credit(&mut self) {
        for (id, bytes) in self.ledger.take() {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.consume(bytes);
                // The message behind those that were read may get its reservation now.
                if stream.framing.is_partial() {
                    self.unreserved.push(id);
                }
                self.recount(id);
                self.return_stream_credit(id);
            }
        }
        if self.streams.is_empty() && self.streams.capacity() > self.kept_streams() {
            self.streams = Streams::default();
        }
    }

    /// Gives the client the credit that is due on a stream.
    pub(super) fn return_stream_credit(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let credit = stream.take_credit();
        if credit > 0 {
            self.add_stream_credit(id, credit);
        }
    }

    /// Gives the client credit for bytes on a stream and on the connection.
    pub(super) fn add_stream_credit(&mut self, id: u32, bytes: usize) {
        self.return_bytes(bytes);
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.end_stream_received) else {
            return;
        };
        stream.pending_credit += bytes;
        if stream.pending_credit >= STREAM_WINDOW as usize / 2 {
            self.send_stream_credit(id);
        }
    }

    /// Sends the credit of a stream at once, so that the rest of a reserved message can arrive.
    pub(super) fn send_credit_now(&mut self, id: u32) {
        if self.pending_credit > 0 {
            self.send_connection_credit();
        }
        self.send_stream_credit(id);
    }

    fn send_connection_credit(&mut self) {
        let increment = u32::try_from(std::mem::take(&mut self.pending_credit)).unwrap_or(u32::MAX >> 1);
        self.recv_window += i64::from(increment);
        frames::write(&mut self.output, kind::WINDOW_UPDATE, 0, 0, &increment.to_be_bytes());
    }

    fn send_stream_credit(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.pending_credit > 0) else {
            return;
        };
        let increment = u32::try_from(std::mem::take(&mut stream.pending_credit)).unwrap_or(u32::MAX >> 1);
        stream.recv_window += i64::from(increment);
        frames::write(&mut self.output, kind::WINDOW_UPDATE, 0, id, &increment.to_be_bytes());
    }
}
