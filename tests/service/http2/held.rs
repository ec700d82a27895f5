//! Questions of a stream that wait for Redis: they count as buffered until they are decided.

use std::time::Duration;

use prost::Message as _;
use weir_config::{Config, RedisConfig, StoreConfig, Topology};
use weir_proto::v1::{ShouldAllowStreamRequest, StreamedRequest};
use weir_units::Micros;

use super::requests::{STREAM, data, head};
use crate::support::frames::{Raw, WINDOW_UPDATE, number};
use crate::support::grpc::framed;
use crate::support::server::{Server, ask_under, config};
use crate::support::{RedisServer, redis_config};

const INITIAL_WINDOW_SIZE: u16 = 4;

/// Bytes of each message, nearly all of them in an unknown field.
const MESSAGE: usize = 60_000;

/// Questions are parts of their messages. A message once counted as read as soon as its questions were in flight, so
/// that one stream got credit for a thousand messages, 60 MB, which no budget knew.
#[test]
fn questions_in_flight_return_no_credit() {
    let redis = RedisServer::start();
    let deadline = Micros::from_secs(5);
    let store = RedisConfig { deadline, ..redis_config(vec![redis.url()], Topology::Single) };
    let server = Server::ready(Config { store: StoreConfig::Redis(store), ..config() });
    redis.freeze();
    let mut client = Client::open(&server);
    client.send_all(40 * MESSAGE);
    redis.thaw();
    // The initial window, and the message for which there was a reservation.
    assert!(client.sent < 4 * MESSAGE, "{} bytes were given credit while Redis hung", client.sent);
    client.go_on_until(40 * MESSAGE);
}

/// A client that sends padded questions on one stream as far as its credit goes.
struct Client {
    raw: Raw,
    connection_window: i64,
    stream_window: i64,
    sent: usize,
    message: Vec<u8>,
}

impl Client {
    fn open(server: &Server) -> Self {
        let mut raw = Raw::open(server.grpc);
        let initial = raw.settings().get(&INITIAL_WINDOW_SIZE).copied().unwrap_or(65_535);
        raw.send(&head(1, STREAM));
        let (connection_window, stream_window) = (65_535, i64::from(initial));
        Self { raw, connection_window, stream_window, sent: 0, message: message() }
    }

    /// Sends `most` bytes, or fewer if no more credit comes.
    fn send_all(&mut self, most: usize) {
        self.raw.stream().set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        while self.sent < most {
            if !self.send_some(most) && self.read().is_none() {
                return;
            }
        }
    }

    /// Sends until `most` bytes are sent in all; credit must come.
    fn go_on_until(&mut self, most: usize) {
        self.raw.stream().set_read_timeout(Some(crate::support::SOON)).unwrap();
        while self.sent < most {
            if !self.send_some(most) {
                self.read().expect("credit, once Redis answers");
            }
        }
    }

    fn send_some(&mut self, most: usize) -> bool {
        let credit = self.connection_window.min(self.stream_window).max(0) as usize;
        let length = credit.min(16_384).min(most - self.sent);
        if length > 0 {
            let start = self.sent % self.message.len();
            let piece: Vec<u8> = self.message.iter().copied().cycle().skip(start).take(length).collect();
            self.raw.send(&data(1, &piece));
            self.connection_window -= length as i64;
            self.stream_window -= length as i64;
            self.sent += length;
        }
        length > 0
    }

    /// Takes the next frame, if one comes in time.
    fn read(&mut self) -> Option<()> {
        let frame = self.raw.read().ok()?;
        match frame.kind {
            WINDOW_UPDATE if frame.stream == 0 => self.connection_window += i64::from(number(&frame.payload)),
            WINDOW_UPDATE => self.stream_window += i64::from(number(&frame.payload)),
            _ => {}
        }
        Some(())
    }
}

fn message() -> Vec<u8> {
    let asked = StreamedRequest { id: 1, request: Some(ask_under("open", "held", "c")) };
    let mut message = ShouldAllowStreamRequest { requests: vec![asked] }.encode_to_vec();
    let padding = MESSAGE - message.len() - 9;
    // An unknown field: its number with its type, its length in three bytes, its bytes.
    message.extend([15 << 3 | 2, padding as u8 | 0x80, (padding >> 7) as u8 | 0x80, (padding >> 14) as u8]);
    message.extend(vec![0; padding]);
    framed(0, &message)
}
