//! Checks that the server sends valid HTTP/2 within its windows. The monitor sees the bytes of both sides.

use std::collections::{HashMap, VecDeque};

use crate::wire::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, PREFACE,
    RST_STREAM, Received, SETTINGS, WINDOW_UPDATE,
};

const LARGEST_FRAME: usize = 16_384;

const INTERNAL_ERROR: u32 = 2;

/// The progress of one stream.
#[derive(Default)]
pub(crate) struct Seen {
    /// The client has sent HEADERS.
    opened: bool,
    /// Bytes of DATA in both directions, and credit for them.
    pub(crate) sent: i64,
    pub(crate) received: Vec<u8>,
    granted: i64,
    pub(crate) credited: i64,
    blocks: usize,
    /// The server has ended it, or reset it.
    pub(crate) ended: bool,
    pub(crate) reset: Option<u32>,
    pub(crate) grpc_status: Option<String>,
}

pub(crate) struct Monitor {
    /// Unparsed bytes of the client; the preface comes before.
    sent: Vec<u8>,
    preface: usize,
    /// The client has sent a frame that is too large, behind which there are no frames.
    lost: bool,
    /// The client is within a header block.
    pub(crate) in_block: bool,
    pub(crate) frames_sent: usize,

    received: Vec<u8>,
    pub(crate) frames_received: usize,
    decoder: fluke_hpack::Decoder<'static>,
    block: Option<(u32, bool, Vec<u8>)>,
    /// INITIAL_WINDOW_SIZE: the one that holds, and those that are not acknowledged.
    initial: u32,
    unacknowledged: VecDeque<Option<u32>>,
    pings: VecDeque<Vec<u8>>,
    /// PINGs of the server that the client has to acknowledge.
    pub(crate) pinged: Vec<Vec<u8>>,
    pub(crate) connection: Seen,
    pub(crate) streams: HashMap<u32, Seen>,
    pub(crate) goaway: Option<u32>,
    /// The server's own INITIAL_WINDOW_SIZE.
    pub(crate) their_initial: i64,
}

impl Monitor {
    pub(crate) fn new() -> Self {
        Self {
            sent: Vec::new(),
            preface: PREFACE.len(),
            lost: false,
            in_block: false,
            frames_sent: 0,
            received: Vec::new(),
            frames_received: 0,
            decoder: fluke_hpack::Decoder::new(),
            block: None,
            initial: 65_535,
            unacknowledged: VecDeque::new(),
            pings: VecDeque::new(),
            pinged: Vec::new(),
            connection: Seen { granted: 65_535, credited: 65_535, ..Seen::default() },
            streams: HashMap::new(),
            goaway: None,
            their_initial: 65_535,
        }
    }

    /// True if the client has sent whole frames and whole blocks only.
    pub(crate) fn is_clean(&self) -> bool {
        self.sent.is_empty() && self.preface == 0 && !self.lost && !self.in_block
    }

    /// The client is about to send this. What it grants may be used from now on.
    pub(crate) fn sends(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().min(self.preface);
        self.preface -= skipped;
        self.sent.extend_from_slice(&bytes[skipped..]);
        while !self.lost {
            let length =
                self.sent.get(..3).map_or(0, |it| u32::from_be_bytes([0, it[0], it[1], it[2]]) as usize);
            if length > LARGEST_FRAME {
                self.lost = true;
            }
            let Some(frame) = Received::take(&mut self.sent) else { return };
            self.frames_sent += 1;
            self.sent_frame(frame);
        }
    }

    fn sent_frame(&mut self, frame: Received) {
        let stream = frame.stream & 0x7fff_ffff;
        match frame.kind {
            HEADERS | CONTINUATION => {
                self.streams.entry(stream).or_default().opened = true;
                self.in_block = !frame.has(END_HEADERS);
            }
            DATA => {
                let size = frame.payload.len() as i64;
                self.connection.sent += size;
                self.streams.entry(stream).or_default().sent += size;
            }
            WINDOW_UPDATE => {
                let increment = i64::from(frame.number(0).unwrap_or(0) & 0x7fff_ffff);
                if stream == 0 {
                    self.connection.granted += increment;
                } else {
                    self.streams.entry(stream).or_default().granted += increment;
                }
            }
            SETTINGS if !frame.has(ACK) => {
                let values = frame.payload.chunks_exact(6);
                let initial = values.filter(|it| it[..2] == INITIAL_WINDOW_SIZE.to_be_bytes());
                let initial =
                    initial.map(|it| u32::from_be_bytes([it[2], it[3], it[4], it[5]])).collect::<Vec<_>>();
                self.unacknowledged.push_back(initial.last().copied());
            }
            PING if !frame.has(ACK) => self.pings.push_back(frame.payload),
            _ => {}
        }
    }

    /// The server has sent this.
    pub(crate) fn receives(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        if self.received.starts_with(b"HTTP/1.1 505") {
            return;
        }
        while let Some(frame) = Received::take(&mut self.received) {
            assert!(
                self.frames_received > 0 || frame.kind == SETTINGS && !frame.has(ACK),
                "first: {frame:?}"
            );
            self.frames_received += 1;
            self.received_frame(frame);
        }
        let length = self.received.get(..3).map_or(0, |it| u32::from_be_bytes([0, it[0], it[1], it[2]]));
        assert!(length as usize <= LARGEST_FRAME, "a frame of {length} bytes");
    }

    /// Everything that was sent came whole.
    pub(crate) fn closed(&self) {
        assert!(self.received.is_empty() || self.received.starts_with(b"HTTP/1.1 505"), "half a frame came");
        assert!(self.block.is_none(), "half a block came");
    }

    fn received_frame(&mut self, frame: Received) {
        let within = self.block.is_some();
        assert_eq!(within, frame.kind == CONTINUATION, "{frame:?}");
        match frame.kind {
            DATA => self.data(&frame),
            HEADERS | CONTINUATION => self.headers(&frame),
            RST_STREAM => {
                let code = frame.number(0);
                assert!(frame.stream > 0 && frame.payload.len() == 4, "{frame:?}");
                assert_ne!(code, Some(INTERNAL_ERROR), "{frame:?}");
                let stream = self.streams.entry(frame.stream).or_default();
                stream.ended = true;
                // A stream that was refused long ago may be reset again for what was on its way.
                stream.reset = stream.reset.or(code);
            }
            SETTINGS if frame.has(ACK) => {
                let acknowledged = self.unacknowledged.pop_front().expect("there were SETTINGS");
                self.initial = acknowledged.unwrap_or(self.initial);
                assert!(frame.stream == 0 && frame.payload.is_empty(), "{frame:?}");
            }
            SETTINGS => {
                assert!(frame.stream == 0 && frame.payload.len().is_multiple_of(6), "{frame:?}");
                for value in frame.payload.chunks_exact(6) {
                    if value[..2] == INITIAL_WINDOW_SIZE.to_be_bytes() {
                        self.their_initial =
                            u32::from_be_bytes([value[2], value[3], value[4], value[5]]).into();
                    }
                }
            }
            PING if frame.has(ACK) => {
                assert_eq!(Some(&frame.payload), self.pings.pop_front().as_ref(), "the PINGs in their order");
            }
            PING => self.pinged.push(frame.payload),
            GOAWAY => {
                assert!(frame.stream == 0 && frame.payload.len() >= 8, "{frame:?}");
                let code = frame.number(4);
                assert_ne!(code, Some(INTERNAL_ERROR), "{frame:?}");
                self.goaway = self.goaway.max(code);
            }
            WINDOW_UPDATE => self.window_update(&frame),
            _ => panic!("no server sends {frame:?}"),
        }
    }

    fn data(&mut self, frame: &Received) {
        let initial = self.unacknowledged.iter().flatten().copied().fold(self.initial, u32::max);
        let stream = self.streams.get_mut(&frame.stream).expect("a stream that was opened");
        assert!(stream.opened && !stream.ended && stream.blocks == 1, "DATA out of place: {}", frame.stream);
        let size = frame.payload.len() as i64;
        stream.received.extend_from_slice(&frame.payload);
        stream.granted -= size;
        self.connection.granted -= size;
        let fits = i64::from(initial) + stream.granted >= 0 && self.connection.granted >= 0;
        assert!(fits || size == 0, "{size} bytes on {} without a window", frame.stream);
        stream.ended = frame.has(END_STREAM);
    }

    fn headers(&mut self, frame: &Received) {
        let (id, end, mut block) = match self.block.take() {
            None => (frame.stream, frame.has(END_STREAM), Vec::new()),
            Some(begun) => begun,
        };
        assert_eq!(id, frame.stream);
        block.extend_from_slice(&frame.payload);
        if !frame.has(END_HEADERS) {
            self.block = Some((id, end, block));
            return;
        }
        let stream = self.streams.get_mut(&id).expect("a stream that was opened");
        assert!(stream.opened && !stream.ended && stream.blocks < 2, "HEADERS out of place: {id}");
        stream.blocks += 1;
        stream.ended = end;
        assert!(end || stream.blocks == 1, "trailers end a stream");
        let fields = self.decoder.decode(&block).expect("a block that can be decoded");
        assert_eq!(fields.first().is_some_and(|field| field.0 == b":status"), stream.blocks == 1);
        let status = fields.iter().find(|field| field.0 == b"grpc-status");
        stream.grpc_status = status.map(|field| String::from_utf8_lossy(&field.1).into_owned());
    }

    fn window_update(&mut self, frame: &Received) {
        let increment = frame.number(0).map_or(0, i64::from);
        assert!(frame.payload.len() == 4 && (1..1 << 31).contains(&increment), "{frame:?}");
        if frame.stream == 0 {
            self.connection.credited += increment;
            assert!(self.connection.credited - self.connection.sent < 1 << 31, "a window that cannot be");
        } else {
            let stream = self.streams.get_mut(&frame.stream).expect("a stream that was opened");
            stream.credited += increment;
            assert!(self.their_initial + stream.credited - stream.sent < 1 << 31, "a window that cannot be");
        }
    }
}
