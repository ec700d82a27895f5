//! The client side of a connection, frame by frame. It sends what a test says, and checks everything that it reads
//! against RFC 9113.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fluke_hpack::Decoder;
use prost::Message as _;
use weir_proto::v1::ShouldAllowResponse;

use super::INITIAL_WINDOW_SIZE;
use crate::support::frames::{
    self, ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PREFACE, PRIORITY,
    RST_STREAM, Raw, ReadFrame, SETTINGS, WINDOW_UPDATE, WITH_PRIORITY, number,
};

type Fields = Vec<(String, String)>;

/// The bytes that the server may send on a stream before it gets more credit.
const WINDOW: i64 = 65_535;

pub(super) struct Session {
    raw: Raw,
    decoder: Decoder<'static>,
    /// A header block that has not ended.
    block: Option<(u32, bool, Vec<u8>)>,
    /// Credit of the server on all streams.
    window: i64,
    /// Our credit on all streams.
    pub(super) credit: i64,
    pub(super) initial_credit: i64,
    streams: BTreeMap<u32, Stream>,
    pongs: usize,
    /// The last stream ID and the error code of each GOAWAY.
    pub(super) goaways: Vec<(u32, u32)>,
    pub(super) closed: bool,
    /// True if the server's PINGs are answered.
    pub(super) answers_pings: bool,
}

/// A stream as it is seen from here.
#[derive(Debug, Default)]
struct Stream {
    window: i64,
    credit: i64,
    answer: Answer,
}

/// The frames that have come on a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) head: Fields,
    pub(super) data: Vec<u8>,
    pub(super) trailers: Fields,
    pub(super) ended: bool,
    pub(super) reset: Option<u32>,
}

impl Answer {
    /// The one message of a call that was answered as gRPC has it.
    pub(super) fn message(&self) -> &[u8] {
        assert!(self.ended && self.reset.is_none(), "{self:?}");
        assert_eq!(self.of(&self.head, ":status"), "200");
        assert_eq!(self.of(&self.head, "content-type"), "application/grpc");
        assert_eq!(self.of(&self.trailers, "grpc-status"), "0");
        assert!(self.trailers.iter().all(|(name, _)| !name.starts_with(':')), "{self:?}");
        assert_eq!((self.data[0], number(&self.data[1..]) as usize), (0, self.data.len() - 5));
        &self.data[5..]
    }

    /// Asserts that the answer allows.
    pub(super) fn allows(&self) {
        assert!(ShouldAllowResponse::decode(self.message()).unwrap().allowed, "{self:?}");
    }

    /// gRPC's code, wherever it stands.
    pub(super) fn code(&self) -> &str {
        let fields = if self.trailers.is_empty() { &self.head } else { &self.trailers };
        self.of(fields, "grpc-status")
    }

    pub(super) fn of<'a>(&self, fields: &'a Fields, name: &str) -> &'a str {
        let value = fields.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
        value.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

impl Session {
    pub(super) fn open(address: SocketAddr) -> Self {
        let mut session = Self {
            raw: Raw::connect(address),
            decoder: Decoder::new(),
            block: None,
            window: WINDOW,
            credit: 65_535,
            initial_credit: 65_535,
            streams: BTreeMap::new(),
            pongs: 0,
            goaways: Vec::new(),
            closed: false,
            answers_pings: true,
        };
        session.send(PREFACE);
        session.send(&frames::settings(&[]));
        session
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.raw.send(bytes);
    }

    /// Of which the server may already have had enough.
    pub(super) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.raw.try_send(bytes)
    }

    /// Allows the server to send more.
    fn grant(&mut self, stream: u32, increment: u32) {
        let window = if stream == 0 { &mut self.window } else { &mut self.stream(stream).window };
        *window += i64::from(increment);
        self.try_send(&frames::window_update(stream, increment));
    }

    /// Sends DATA as the server's credit allows, and reads meanwhile.
    pub(super) fn pour(&mut self, stream: u32, mut bytes: &[u8], flags: u8) {
        while !bytes.is_empty() {
            let open = self.until("credit", |it| it.room(stream) > 0 || it.seen(stream).ended);
            assert!(open, "the connection was closed: {:?}", self.goaways);
            // Without it no credit would come, and the test would wait forever.
            assert!(self.room(stream) > 0, "it was answered before its end: {:?}", self.seen(stream));
            let length = bytes.len().min(16_384).min(usize::try_from(self.room(stream)).unwrap());
            let (piece, rest) = bytes.split_at(length);
            bytes = rest;
            self.credit -= length as i64;
            self.stream(stream).credit -= length as i64;
            self.send(&frames::frame(DATA, if rest.is_empty() { flags } else { 0 }, stream, piece));
        }
    }

    /// Returns the number of bytes that may be sent on a stream.
    fn room(&mut self, stream: u32) -> i64 {
        self.credit.min(self.initial_credit + self.stream(stream).credit)
    }

    /// Returns the answer on a stream so far.
    pub(super) fn seen(&mut self, stream: u32) -> Answer {
        self.stream(stream).answer.clone()
    }

    /// Waits for the end of a stream. Returns its answer.
    pub(super) fn ended(&mut self, stream: u32) -> Answer {
        let over = |it: &mut Self| it.stream(stream).answer.ended || it.stream(stream).answer.reset.is_some();
        assert!(self.until("the end of a stream", over), "closed before stream {stream} ended");
        self.seen(stream)
    }

    /// All these end, and were allowed.
    pub(super) fn allow(&mut self, streams: &[u32]) {
        streams.iter().for_each(|stream| self.ended(*stream).allows());
    }

    /// Waits until the server has read everything that was sent.
    pub(super) fn settle(&mut self) {
        let count = self.pongs;
        self.send(&frames::ping(*b"settled?"));
        assert!(self.until("a PING's answer", |it| it.pongs > count), "{:?}", self.goaways);
    }

    /// Reads until `condition` holds; whether it did before the connection was closed.
    pub(super) fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) -> bool {
        while !condition(self) {
            match self.raw.read() {
                Ok(frame) => self.take(&frame),
                Err(error) if frames::is_timeout(&error) => panic!("waited in vain for {what}"),
                Err(_) => self.closed = true,
            }
            if self.closed {
                return condition(self);
            }
        }
        true
    }

    /// One frame of the server's.
    fn take(&mut self, frame: &ReadFrame) {
        assert!(frame.payload.len() <= 16_384, "{frame:?}");
        assert!(self.block.is_none() || frame.kind == CONTINUATION, "{frame:?} within a header block");
        match frame.kind {
            DATA => self.take_data(frame),
            HEADERS => {
                assert_eq!(frame.flags & (PADDED | WITH_PRIORITY), 0, "{frame:?}");
                self.take_block(frame.stream, frame.flags & END_STREAM != 0, Vec::new(), frame);
            }
            CONTINUATION => {
                let (stream, end, block) = self.block.take().expect("HEADERS come first");
                assert_eq!(stream, frame.stream);
                self.take_block(stream, end, block, frame);
            }
            SETTINGS => self.take_settings(frame),
            WINDOW_UPDATE => {
                let (stream, increment) = (frame.stream, i64::from(number(&frame.payload)));
                assert!(increment > 0, "{frame:?}");
                let credit = if stream == 0 { &mut self.credit } else { &mut self.stream(stream).credit };
                *credit += increment;
            }
            PING if frame.flags & ACK != 0 => self.pongs += 1,
            PING if self.answers_pings => {
                self.try_send(&frames::frame(PING, ACK, 0, &frame.payload));
            }
            RST_STREAM => {
                let answer = &mut self.stream(frame.stream).answer;
                assert_eq!(answer.reset, None, "{frame:?}");
                answer.reset = Some(number(&frame.payload));
            }
            GOAWAY => self.goaways.push((number(&frame.payload), number(&frame.payload[4..]))),
            PING | PRIORITY => {}
            kind => panic!("a server does not send frames of type {kind}"),
        }
    }

    fn take_data(&mut self, frame: &ReadFrame) {
        assert_eq!(frame.flags & PADDED, 0, "{frame:?}");
        let length = frame.payload.len();
        self.window -= length as i64;
        self.stream(frame.stream).window -= length as i64;
        let windows = (self.window, WINDOW + self.stream(frame.stream).window);
        assert!(length == 0 || (windows.0 >= 0 && windows.1 >= 0), "more than it may: {windows:?}");
        let answer = &mut self.stream(frame.stream).answer;
        assert!(!answer.head.is_empty() && !answer.ended, "{answer:?}, then {frame:?}");
        answer.data.extend(&frame.payload);
        answer.ended = frame.flags & END_STREAM != 0;
        if length > 0 {
            self.grant(0, length as u32);
            self.grant(frame.stream, length as u32);
        }
    }

    fn take_block(&mut self, stream: u32, end: bool, mut block: Vec<u8>, frame: &ReadFrame) {
        block.extend(&frame.payload);
        if frame.flags & END_HEADERS == 0 {
            self.block = Some((stream, end, block));
            return;
        }
        let text = |bytes| String::from_utf8(bytes).expect("fields of ours are text");
        let fields = self.decoder.decode(&block).unwrap_or_else(|error| panic!("{error:?} in {block:02x?}"));
        let fields: Fields = fields.into_iter().map(|(name, value)| (text(name), text(value))).collect();
        let answer = &mut self.stream(stream).answer;
        assert!(!answer.ended, "{answer:?}, then {fields:?}");
        if answer.head.is_empty() {
            answer.head = fields;
        } else {
            assert!(end, "trailers end their stream");
            answer.trailers = fields;
        }
        answer.ended = end;
    }

    fn take_settings(&mut self, frame: &ReadFrame) {
        assert_eq!((frame.stream, frame.payload.len() % 6), (0, 0), "{frame:?}");
        if frame.flags & ACK == 0 {
            let settings = frames::settings_of(&frame.payload);
            self.initial_credit =
                settings.get(&INITIAL_WINDOW_SIZE).map_or(self.initial_credit, |it| (*it).into());
            self.try_send(&frames::settings_ack());
        }
    }

    fn stream(&mut self, stream: u32) -> &mut Stream {
        self.streams.entry(stream).or_default()
    }
}
