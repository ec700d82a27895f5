//! HTTP/2 frames (RFC 9113, 4 and 6): parsing and writing.

/// The client's connection preface (3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The default of SETTINGS_MAX_FRAME_SIZE: the largest payload that every peer accepts.
pub const LARGEST_PAYLOAD: usize = 16_384;

/// The initial flow-control window unless SETTINGS change it.
pub const DEFAULT_WINDOW: i64 = 65_535;

/// Length of a frame header in bytes.
pub const HEAD: usize = 9;

/// Frame types (6).
#[allow(missing_docs)]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Frame flags (6).
#[allow(missing_docs)]
pub mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

/// Settings (6.5.2).
#[allow(missing_docs)]
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// One frame, borrowed from the read buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Type of the frame, see [`kind`].
    pub kind: u8,
    /// Flags of the frame, see [`flag`].
    pub flags: u8,
    /// Stream of the frame; 0 is the connection.
    pub stream: u32,
    /// The bytes after the frame header.
    pub payload: &'a [u8],
}

/// The reason why a frame is invalid, for people.
pub type FrameFault = &'static str;

/// Returns the first frame in `bytes` and its length; `None` while it is incomplete.
pub fn first(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameFault> {
    let Some(head) = bytes.get(..HEAD) else { return Ok(None) };
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    if length > LARGEST_PAYLOAD {
        return Err("it sent a frame that is too large");
    }
    let Some(payload) = bytes.get(HEAD..HEAD + length) else { return Ok(None) };
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & (u32::MAX >> 1);
    Ok(Some((Frame { kind: head[3], flags: head[4], stream, payload }, HEAD + length)))
}

impl<'a> Frame<'a> {
    /// True if this flag is set.
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the payload of a DATA or HEADERS frame without padding and priority.
    pub fn content(&self) -> Result<&'a [u8], FrameFault> {
        const TOO_SHORT: FrameFault = "it sent a frame that is too short for its padding";
        let mut content = self.payload;
        if self.has(flag::PADDED) {
            let (&padding, rest) = content.split_first().ok_or(TOO_SHORT)?;
            let length = rest.len().checked_sub(padding.into()).ok_or(TOO_SHORT)?;
            content = &rest[..length];
        }
        if self.kind == kind::HEADERS && self.has(flag::PRIORITY) {
            content = content.get(5..).ok_or(TOO_SHORT)?;
        }
        Ok(content)
    }

    /// Reads the 32-bit number at this offset of the payload: RST_STREAM and WINDOW_UPDATE at 0, the error of
    /// GOAWAY at 4.
    pub fn number(&self, at: usize) -> Result<u32, FrameFault> {
        let bytes = self.payload.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or("it sent a frame that is too short")
    }
}

/// Appends a frame.
pub fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&head(kind, flags, stream, payload.len()));
    out.extend_from_slice(payload);
}

/// Returns the frame header for a payload of `length` bytes.
#[inline]
pub fn head(kind: u8, flags: u8, stream: u32, length: usize) -> [u8; HEAD] {
    // The length has 24 bits. No longer payload is ever written.
    let [_, a, b, c] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

/// Appends SETTINGS.
pub fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(6 * settings.len());
    for (name, value) in settings {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    write(out, kind::SETTINGS, 0, 0, &payload);
}

/// Iterates over the settings of a SETTINGS payload.
pub fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).map(|bytes| {
        let [a, b, c, d, e, f] = [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]];
        (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        write(&mut bytes, kind::DATA, flag::END_STREAM, 7, b"hello");
        for short in 0..bytes.len() {
            assert_eq!(first(&bytes[..short]), Ok(None));
        }
        let frame = Frame { kind: kind::DATA, flags: flag::END_STREAM, stream: 7, payload: b"hello" };
        assert_eq!(first(&bytes), Ok(Some((frame, bytes.len()))));
        bytes.clear();
        write_settings(&mut bytes, &[(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, 1 << 30)]);
        let (frame, _) = first(&bytes).unwrap().unwrap();
        assert_eq!(settings(frame.payload).collect::<Vec<_>>(), [(2, 0), (4, 1 << 30)]);
    }

    #[test]
    fn padding_and_priority_are_taken_off() {
        let frame = |kind, flags, payload| Frame { kind, flags, stream: 1, payload };
        assert_eq!(frame(kind::DATA, flag::PADDED, b"\x02ab\0\0").content(), Ok(&b"ab"[..]));
        let flags = flag::PADDED | flag::PRIORITY;
        assert_eq!(frame(kind::HEADERS, flags, b"\x01\0\0\0\0\x10ab\0").content(), Ok(&b"ab"[..]));
        assert!(frame(kind::DATA, flag::PADDED, b"").content().is_err());
        assert!(frame(kind::DATA, flag::PADDED, b"\x03ab").content().is_err());
        assert!(frame(kind::HEADERS, flag::PRIORITY, b"abc").content().is_err());
    }
}
