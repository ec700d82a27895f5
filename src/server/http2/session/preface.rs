//! How a connection begins: who speaks HTTP/2 is told our settings, and who does not, in words of its own.

use super::super::code::Broken;
use super::{Begun, CONNECTION_WINDOW, STREAM_WINDOW, Session};
use crate::http2::frames::{self, DEFAULT_WINDOW, PREFACE, kind, setting};

/// For people and health checks that have found the wrong port. They would be shown bytes else.
const HTTP_1: &str = "HTTP/1.1 505 HTTP Version Not Supported\r\n\
    content-type: text/plain\r\n\
    content-length: 109\r\n\
    connection: close\r\n\
    \r\n\
    This port speaks gRPC, which is HTTP/2. /metrics, /livez and /readyz are on another one: see `server.admin`.\n";

impl Session {
    /// Takes what a client says first, and says how many bytes that was: none, when it is not all there yet.
    pub(super) fn preface(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let length = bytes.len().min(PREFACE.len());
        if bytes[..length] != PREFACE[..length] {
            if bytes.first().is_some_and(u8::is_ascii_uppercase) {
                self.out.extend_from_slice(HTTP_1.as_bytes());
            }
            return Err(Broken::protocol("it does not speak HTTP/2"));
        }
        if length < PREFACE.len() {
            return Ok(0);
        }
        self.begun = Begun::Preface;
        self.introduce();
        Ok(length)
    }

    fn introduce(&mut self) {
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, self.bounds.streams),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, self.bounds.header_bytes),
        ];
        frames::write_settings(&mut self.out, &settings);
        let more = CONNECTION_WINDOW - DEFAULT_WINDOW as u32;
        frames::write(&mut self.out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::HTTP_1;

    #[test]
    fn the_length_is_the_texts() {
        let (head, text) = HTTP_1.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", text.len())), "{}", text.len());
    }
}
