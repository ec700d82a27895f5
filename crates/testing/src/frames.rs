//! Raw HTTP/2: frames as bytes, and a connection that sends and reads them without a library's checks.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::SOON;

/// The client connection preface (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Types of frames.

/// RFC 9113, section 6.1.
pub const DATA: u8 = 0;
/// RFC 9113, section 6.2.
pub const HEADERS: u8 = 1;
/// RFC 9113, section 6.3.
pub const PRIORITY: u8 = 2;
/// RFC 9113, section 6.4.
pub const RST_STREAM: u8 = 3;
/// RFC 9113, section 6.5.
pub const SETTINGS: u8 = 4;
/// RFC 9113, section 6.6.
pub const PUSH_PROMISE: u8 = 5;
/// RFC 9113, section 6.7.
pub const PING: u8 = 6;
/// RFC 9113, section 6.8.
pub const GOAWAY: u8 = 7;
/// RFC 9113, section 6.9.
pub const WINDOW_UPDATE: u8 = 8;
/// RFC 9113, section 6.10.
pub const CONTINUATION: u8 = 9;

// Flags of frames.

/// Of SETTINGS and PING: an acknowledgement.
pub const ACK: u8 = 1;
/// Of DATA and HEADERS: the last frame of the stream.
pub const END_STREAM: u8 = 1;
/// Of HEADERS and CONTINUATION: the last frame of the header block.
pub const END_HEADERS: u8 = 4;
/// Of DATA and HEADERS: there is padding.
pub const PADDED: u8 = 8;
/// Of HEADERS: there is a priority.
pub const WITH_PRIORITY: u8 = 0x20;

/// One frame that has been read.
#[derive(Debug)]
pub struct ReadFrame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

/// One connection.
pub struct Raw(TcpStream);

impl Raw {
    /// A connection on which nothing has been sent.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.set_write_timeout(Some(SOON)).unwrap();
        // As gRPC clients do: otherwise a call waits until the server has acknowledged the one before.
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Opens a connection, and sends the preface and empty SETTINGS.
    pub fn open(address: SocketAddr) -> Self {
        let raw = Self::connect(address);
        raw.send(&[PREFACE, &settings(&[])].concat());
        raw
    }

    /// The same connection, for another thread that reads.
    pub fn reader(&self) -> Self {
        Self(self.0.try_clone().unwrap())
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.0
    }

    /// Sends `bytes`, which the other side must take.
    pub fn send(&self, bytes: &[u8]) {
        assert!(self.try_send(bytes));
    }

    /// Sends `bytes`. Returns false if the peer no longer accepts them.
    pub fn try_send(&self, bytes: &[u8]) -> bool {
        (&self.0).write_all(bytes).is_ok()
    }

    /// The server's settings.
    pub fn settings(&mut self) -> HashMap<u16, u32> {
        settings_of(&self.next(|frame| frame.kind == SETTINGS).expect("the server's settings").payload)
    }

    /// Returns the error code of the server's GOAWAY, if one arrives.
    pub fn goaway(&mut self) -> Option<u32> {
        self.next(|frame| frame.kind == GOAWAY).map(|frame| number(&frame.payload[4..]))
    }

    /// Returns true if the server acknowledges this PING.
    pub fn pong(&mut self, payload: [u8; 8]) -> bool {
        self.next(|frame| frame.kind == PING && frame.flags & ACK != 0 && frame.payload == payload).is_some()
    }

    /// Returns the error code of the stream's RST_STREAM, if one arrives.
    pub fn reset(&mut self, stream: u32) -> Option<u32> {
        let found = self.next(|frame| frame.kind == RST_STREAM && frame.stream == stream);
        found.map(|frame| number(&frame.payload))
    }

    /// Returns whether and how the server ended the connection: with a code, or without one, because a GOAWAY can be
    /// lost when the socket is closed with unread data.
    pub fn end(&mut self) -> ObservedEnd {
        let mut code = None;
        loop {
            match self.read() {
                Ok(frame) if frame.kind == GOAWAY => code = Some(number(&frame.payload[4..])),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => return ObservedEnd::Open,
                Err(_) => return ObservedEnd::Closed(code),
            }
        }
    }

    /// Reads the replies to these streams until each has ended. Call it once per connection, because HPACK is stateful.
    pub fn replies(&mut self, streams: &[u32]) -> Vec<StreamReply> {
        self.replies_with(&mut fluke_hpack::Decoder::new(), streams)
    }

    /// Like [`Raw::replies`], with the HPACK state of the connection so far.
    pub fn replies_with(
        &mut self,
        decoder: &mut fluke_hpack::Decoder<'_>,
        streams: &[u32],
    ) -> Vec<StreamReply> {
        let mut replies: HashMap<u32, StreamReply> = HashMap::new();
        let has_ended =
            |reply: Option<&StreamReply>| reply.is_some_and(|reply| reply.status.or(reply.reset).is_some());
        while !streams.iter().all(|stream| has_ended(replies.get(stream))) {
            let ReadFrame { kind, stream, payload, .. } = self.read().expect("a frame");
            let reply = replies.entry(stream).or_default();
            match kind {
                DATA => reply.data.extend(payload),
                RST_STREAM => reply.reset = Some(number(&payload)),
                HEADERS => {
                    let headers = decoder.decode(&payload).unwrap();
                    let status = headers.iter().find(|(name, _)| name == b"grpc-status");
                    let status = status.map(|(_, value)| String::from_utf8_lossy(value).parse().unwrap());
                    reply.status = reply.status.or(status);
                }
                _ => {}
            }
        }
        streams.iter().map(|stream| replies.remove(stream).unwrap()).collect()
    }

    /// The next frame.
    pub fn read(&mut self) -> io::Result<ReadFrame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let mut payload = vec![0; number(&[0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload)?;
        Ok(ReadFrame { kind: head[3], flags: head[4], stream: number(&head[5..]), payload })
    }

    fn next(&mut self, wanted: impl Fn(&ReadFrame) -> bool) -> Option<ReadFrame> {
        loop {
            let frame = self.read().ok()?;
            if wanted(&frame) {
                return Some(frame);
            }
        }
    }
}

/// The reply on a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct StreamReply {
    /// The payloads of its DATA frames.
    pub data: Vec<u8>,
    /// The gRPC status, where the stream has ended with one.
    pub status: Option<u32>,
    /// The code that it was reset with.
    pub reset: Option<u32>,
}

/// True for a read timeout.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The observed end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum ObservedEnd {
    /// The server closed it, with the code of its GOAWAY if there was one.
    Closed(Option<u32>),
    /// Still open.
    Open,
}

/// The headers of a POST to `/`.
pub fn headers(stream: u32, end_stream: bool) -> Vec<u8> {
    let block = [0x83, 0x86, 0x84, 0x41, 1, b'a'];
    frame(HEADERS, END_HEADERS | u8::from(end_stream), stream, &block)
}

/// A whole gRPC call of `path` with one message, which is framed already.
pub fn call(stream: u32, path: &str, further: &[(&str, &str)], framed: &[u8]) -> Vec<u8> {
    [call_headers(stream, path, further), frame(DATA, END_STREAM, stream, framed)].concat()
}

/// The headers of a gRPC call of `path`, whose messages follow.
pub fn call_headers(stream: u32, path: &str, further: &[(&str, &str)]) -> Vec<u8> {
    let literal = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let mut block = [&[0x83, 0x86, 0x41, 1, b'a', 0x04][..], &literal(path)].concat();
    for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")].iter().chain(further) {
        block.extend([&[0][..], &literal(name), &literal(value)].concat());
    }
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// Cancels a stream.
pub fn rst_stream(stream: u32) -> Vec<u8> {
    const CANCEL: u32 = 8;
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

/// Gives a stream, or the connection, more flow-control window.
pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// Returns a WINDOW_UPDATE that overflows the window, which is an error of that stream.
pub fn overflowing_window_update(stream: u32) -> Vec<u8> {
    window_update(stream, u32::MAX >> 1)
}

/// SETTINGS with these entries.
pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &entries.iter().flat_map(entry).collect::<Vec<_>>())
}

/// Parses the payload of SETTINGS.
pub fn settings_of(payload: &[u8]) -> HashMap<u16, u32> {
    let entry = |entry: &[u8]| (u16::from_be_bytes([entry[0], entry[1]]), number(&entry[2..]));
    payload.chunks(6).map(entry).collect()
}

/// The acknowledgement of SETTINGS.
pub fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// A PING.
pub fn ping(payload: [u8; 8]) -> Vec<u8> {
    frame(PING, 0, 0, &payload)
}

/// Any frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The first four bytes as a number.
pub fn number(bytes: &[u8]) -> u32 {
    bytes[..4].try_into().map(u32::from_be_bytes).unwrap()
}
