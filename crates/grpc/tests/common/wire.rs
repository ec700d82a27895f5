//! HTTP/2 as a client writes and reads it: independent of what the server uses, so that a shared fault shows.

/// The client's connection preface (RFC 9113, 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const PRIORITY: u8 = 0x2;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PUSH_PROMISE: u8 = 0x5;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
pub(crate) const CONTINUATION: u8 = 0x9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITIZED: u8 = 0x20;

pub(crate) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(crate) const ENABLE_PUSH: u16 = 0x2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(crate) const MAX_FRAME_SIZE: u16 = 0x5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 0x6;

/// A name and a value.
pub(crate) type Pair<'a> = (&'a str, &'a str);

/// First fields of every call.
pub(crate) const CALL: [Pair<'static>; 5] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/echo.Echo/Unary"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
];

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut bytes = frame_head(payload.len() as u32, kind, flags, stream);
    bytes.extend_from_slice(payload);
    bytes
}

/// The nine bytes before a payload (RFC 9113, 4.1); the length is as given.
pub(crate) fn frame_head(length: u32, kind: u8, flags: u8, stream: u32) -> Vec<u8> {
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes
}

/// A DATA frame.
pub(crate) fn data(stream: u32, flags: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame(DATA, flags, stream, payload)
}

/// A HEADERS frame with all of its block.
pub(crate) fn headers(stream: u32, flags: u8, fields: &[Pair<'_>]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, block(fields))
}

/// A SETTINGS frame.
pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in values {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, payload)
}

/// A WINDOW_UPDATE frame.
pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
}

/// An RST_STREAM frame.
pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, code.to_be_bytes())
}

/// A header block of literals without indexing and without Huffman coding (RFC 7541, 6.2.2).
pub(crate) fn block(fields: &[Pair<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        string(&mut bytes, name.as_bytes());
        string(&mut bytes, value.as_bytes());
    }
    bytes
}

/// Appends a string literal (RFC 7541, 5.2).
pub(crate) fn string(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&integer(0, 7, text.len()));
    bytes.extend_from_slice(text);
}

/// An integer behind the pattern of its first byte (RFC 7541, 5.1).
pub(crate) fn integer(pattern: u8, prefix: u32, mut value: usize) -> Vec<u8> {
    let full = (1 << prefix) - 1;
    if value < full {
        return vec![pattern | value as u8];
    }
    let mut bytes = vec![pattern | full as u8];
    value -= full;
    while value >= 128 {
        bytes.push(128 | (value % 128) as u8);
        value /= 128;
    }
    bytes.push(value as u8);
    bytes
}

/// A message with gRPC's prefix.
pub(crate) fn message(content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(content.len() as u32).to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

/// The fields of a call with this path.
pub(crate) fn call_of(path: &str) -> Vec<Pair<'_>> {
    with(":path", path)
}

/// The fields of a call with this field instead of the one of that name.
pub(crate) fn with<'a>(name: &'a str, value: &'a str) -> Vec<Pair<'a>> {
    CALL.into_iter().map(|field| if field.0 == name { (name, value) } else { field }).collect()
}

/// The fields of a call without those of this name.
pub(crate) fn without(name: &str) -> Vec<Pair<'static>> {
    CALL.into_iter().filter(|field| field.0 != name).collect()
}

/// The fields of a call and further ones.
pub(crate) fn and<'a>(more: &[Pair<'a>]) -> Vec<Pair<'a>> {
    CALL.into_iter().chain(more.iter().copied()).collect()
}

/// A whole call of the method that echoes one message.
pub(crate) fn unary(stream: u32, text: &str) -> Vec<u8> {
    [headers(stream, 0, &CALL), data(stream, END_STREAM, message(text))].concat()
}

/// One frame that was read.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Received {
    /// Takes the first frame out of `bytes`, if it is complete.
    pub(crate) fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let length = u32::from_be_bytes([0, *bytes.first()?, *bytes.get(1)?, *bytes.get(2)?]) as usize;
        let payload = bytes.get(9..9 + length)?.to_vec();
        let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        let frame = Self { kind: bytes[3], flags: bytes[4], stream, payload };
        bytes.drain(..9 + length);
        Some(frame)
    }

    /// True if it has this flag.
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The 32 bits at this place of the payload.
    pub(crate) fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(self.payload.get(at..at + 4)?.try_into().ok()?))
    }
}
