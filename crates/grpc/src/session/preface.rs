//! The connection preface (RFC 9113, 3.4): the client's preface, and our settings.

use crate::error_code::ConnectionError;
use crate::frames::{self, DEFAULT_WINDOW, PREFACE, kind, setting};
use crate::session::{CONNECTION_WINDOW, ClientPreface, STREAM_WINDOW, Session};

impl Session {
    /// Consumes the client's preface and returns its length; 0 while it is incomplete.
    pub(super) fn preface(&mut self, bytes: &[u8]) -> Result<usize, ConnectionError> {
        let length = bytes.len().min(PREFACE.len());
        if bytes[..length] != PREFACE[..length] {
            if bytes.first().is_some_and(u8::is_ascii_uppercase) {
                self.output.extend_from_slice(http1_response(self.limits.http1_hint).as_bytes());
            }
            return Err(ConnectionError::protocol("it does not speak HTTP/2"));
        }
        if length < PREFACE.len() {
            return Ok(0);
        }
        self.handshake = ClientPreface::Settings;
        let now = self.now();
        self.client_resets.begin(now);
        self.send_settings();
        Ok(length)
    }

    fn send_settings(&mut self) {
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, self.limits.max_streams),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, self.limits.max_header_bytes),
        ];
        frames::write_settings(&mut self.output, &settings);
        let increment = CONNECTION_WINDOW - DEFAULT_WINDOW as u32;
        frames::write(&mut self.output, kind::WINDOW_UPDATE, 0, 0, &increment.to_be_bytes());
    }
}

/// Returns the explanation for a client that does not speak gRPC.
pub(super) fn wrong_port(hint: &str) -> String {
    format!("This port speaks gRPC, which is HTTP/2. {hint}\n")
}

/// Returns the response to HTTP/1.1. Such a client would show the bytes of a GOAWAY otherwise.
fn http1_response(hint: &str) -> String {
    let text = wrong_port(hint);
    let length = text.len();
    format!(
        "HTTP/1.1 505 HTTP Version Not Supported\r\n\
         content-type: text/plain\r\n\
         content-length: {length}\r\n\
         connection: close\r\n\r\n{text}"
    )
}
