//! Sending side of a connection, within the windows that the server grants.

use crate::request::RequestBlock;
use weir_grpc::frames::{
    DEFAULT_WINDOW, LARGEST_PAYLOAD, PREFACE, flag, kind, setting, write, write_settings,
};

/// The largest window of HTTP/2: received data is counted, not held back.
const OUR_WINDOW: u32 = u32::MAX >> 1;

/// Stream ids have 31 bits; ours are odd.
const LAST_STREAM: u32 = u32::MAX >> 1;

pub(super) struct Outgoing {
    /// Bytes to write, from `begin` on.
    bytes: Vec<u8>,
    begin: usize,
    block: RequestBlock,
    next_stream: u32,
    most_streams: usize,
    /// Send window of the connection.
    window: i64,
    /// Initial send window of a stream.
    initial_window: i64,
    /// The newest stream, the only one that may have data held back.
    stream: u32,
    stream_window: i64,
    held_back: Vec<u8>,
    /// True if further messages follow the first on a stream.
    is_streaming: bool,
}

impl Outgoing {
    pub(super) fn new(block: RequestBlock, is_streaming: bool) -> Self {
        let mut bytes = PREFACE.to_vec();
        let settings = [(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, OUR_WINDOW)];
        write_settings(&mut bytes, &settings);
        write_window_update(&mut bytes, 0, OUR_WINDOW - DEFAULT_WINDOW as u32);
        Self {
            bytes,
            begin: 0,
            block,
            next_stream: 1,
            most_streams: usize::MAX,
            window: DEFAULT_WINDOW,
            initial_window: DEFAULT_WINDOW,
            stream: 0,
            stream_window: 0,
            held_back: Vec::new(),
            is_streaming,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    pub(super) fn written(&mut self, count: usize) {
        self.begin += count;
        if self.begin >= self.bytes.len() {
            self.bytes.clear();
            self.begin = 0;
        }
    }

    /// True if another stream may be opened beside `open` ones.
    pub(super) fn has_room(&self, open: usize) -> bool {
        self.held_back.is_empty() && open < self.most_streams && !self.is_used_up()
    }

    pub(super) const fn is_used_up(&self) -> bool {
        self.next_stream > LAST_STREAM
    }

    /// Opens a stream with the headers of a request.
    pub(super) fn open(&mut self) -> u32 {
        self.stream = self.next_stream;
        self.stream_window = self.initial_window;
        self.next_stream += 2;
        write(&mut self.bytes, kind::HEADERS, flag::END_HEADERS, self.stream, self.block.next());
        self.stream
    }

    /// Sends a message on the newest stream, as far as the windows allow. It is the only one on the stream, unless
    /// this is for streams.
    pub(super) fn send(&mut self, message: &[u8]) {
        let sent = self.send_within_windows(message);
        self.held_back.extend_from_slice(&message[sent..]);
    }

    fn send_within_windows(&mut self, message: &[u8]) -> usize {
        let mut sent = 0;
        while sent < message.len() {
            let granted = usize::try_from(self.window.min(self.stream_window)).unwrap_or(0);
            let length = (message.len() - sent).min(granted).min(LARGEST_PAYLOAD);
            if length == 0 {
                break;
            }
            let is_last = sent + length == message.len() && !self.is_streaming;
            let end = if is_last { flag::END_STREAM } else { 0 };
            write(&mut self.bytes, kind::DATA, end, self.stream, &message[sent..sent + length]);
            sent += length;
            self.window -= length as i64;
            self.stream_window -= length as i64;
        }
        sent
    }

    /// Ends the newest stream: no further message follows.
    pub(super) fn close(&mut self) {
        write(&mut self.bytes, kind::DATA, flag::END_STREAM, self.stream, &[]);
    }

    /// Resets a stream whose caller has given up.
    pub(super) fn cancel(&mut self, stream: u32) {
        const CANCEL: u32 = 8;
        write(&mut self.bytes, kind::RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
        self.forget(stream);
    }

    /// Drops the unsent rest of this stream's message.
    pub(super) fn forget(&mut self, stream: u32) {
        if stream == self.stream {
            self.held_back.clear();
        }
    }

    /// Enlarges a send window: of a stream, or with 0 of the connection.
    pub(super) fn grant(&mut self, stream: u32, more: u32) {
        if stream == 0 {
            self.window += i64::from(more);
        } else if stream == self.stream {
            self.stream_window += i64::from(more);
        }
        self.resume();
    }

    /// Applies a setting of the server.
    pub(super) fn set(&mut self, name: u16, value: u32) {
        match name {
            setting::HEADER_TABLE_SIZE => self.block.set_table_size(value),
            setting::MAX_CONCURRENT_STREAMS => self.most_streams = value as usize,
            setting::INITIAL_WINDOW_SIZE => {
                // It applies to open streams too, whose windows may become negative.
                self.stream_window += i64::from(value) - self.initial_window;
                self.initial_window = value.into();
                self.resume();
            }
            _ => {}
        }
    }

    fn resume(&mut self) {
        if !self.held_back.is_empty() {
            let message = std::mem::take(&mut self.held_back);
            let sent = self.send_within_windows(&message);
            self.held_back = message;
            self.held_back.drain(..sent);
        }
    }

    pub(super) fn acknowledge_settings(&mut self) {
        write(&mut self.bytes, kind::SETTINGS, flag::ACK, 0, &[]);
    }

    pub(super) fn pong(&mut self, payload: &[u8]) {
        write(&mut self.bytes, kind::PING, flag::ACK, 0, payload);
    }

    /// Replenishes our receive window.
    pub(super) fn give_back(&mut self, stream: u32, count: u32) {
        write_window_update(&mut self.bytes, stream, count);
    }
}

fn write_window_update(out: &mut Vec<u8>, stream: u32, more: u32) {
    write(out, kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
}
