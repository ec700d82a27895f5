//! The header blocks of responses. Nearly all begin and end alike, so from the second one on the dynamic table (RFC
//! 7541) shortens both to a byte or two.

use http::{HeaderMap, StatusCode};

use crate::frames::{self, flag, kind};
use crate::hpack::{TABLE, write_text};

/// The state of the client's dynamic table.
#[derive(Debug, Default)]
pub(crate) struct ResponseHeaders {
    /// True if the table has our content-type.
    has_type: bool,
    /// True if the table also has `grpc-status: 0`, inserted after the content-type.
    has_status: bool,
    /// The client allows a smaller table than the default, so nothing is inserted.
    small: bool,
    /// The next block must begin with a size update.
    shrink: bool,
}

const STATUS_200: u8 = 0x88;
const STATUS_OTHER: u8 = 8;
/// Literals with incremental indexing: with the name at index 31, and with a new name.
const KEPT_TYPE: u8 = 0x40 | 31;
const KEPT_NEW: u8 = 0x40;
/// Literals without indexing: with the name at index 31, in two bytes, and with a new name.
const TYPE: [u8; 2] = [0x0f, 31 - 15];
const NEW: u8 = 0;
/// The newest entry of the dynamic table, and the one before it.
const NEWEST: u8 = 0x80 | 62;
const SECOND: u8 = 0x80 | 63;
const SHRINK_TO_ZERO: u8 = 0x20;

const GRPC: &[u8] = b"application/grpc";

impl ResponseHeaders {
    /// Applies the client's SETTINGS_HEADER_TABLE_SIZE.
    pub(crate) fn set_table_size(&mut self, size: u32) {
        if (size as usize) < TABLE && !self.small {
            *self = Self { small: true, shrink: true, ..Self::default() };
        }
    }

    /// Writes the headers of a response with messages.
    #[inline]
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>, stream: u32) {
        if self.has_type {
            let place = if self.has_status { SECOND } else { NEWEST };
            out.extend_from_slice(&frames::head(kind::HEADERS, flag::END_HEADERS, stream, 2));
            out.extend_from_slice(&[STATUS_200, place]);
            return;
        }
        self.write(out, flag::END_HEADERS, stream, |this, block| {
            block.push(STATUS_200);
            if this.small {
                block.extend_from_slice(&TYPE);
            } else {
                this.has_type = true;
                block.push(KEPT_TYPE);
            }
            write_text(GRPC, block);
        });
    }

    /// Writes the trailers `grpc-status: 0`, after [`ResponseHeaders::begin`].
    #[inline]
    pub(crate) fn end_ok(&mut self, out: &mut Vec<u8>, stream: u32) {
        const FLAGS: u8 = flag::END_HEADERS | flag::END_STREAM;
        if self.has_status {
            out.extend_from_slice(&frames::head(kind::HEADERS, FLAGS, stream, 1));
            out.push(NEWEST);
            return;
        }
        self.write(out, FLAGS, stream, |this, block| {
            // Only after the content-type, so that both have known indices.
            this.has_status = this.has_type;
            block.push(if this.has_type { KEPT_NEW } else { NEW });
            write_text(b"grpc-status", block);
            write_text(b"0", block);
        });
    }

    /// Writes the headers of any other response.
    pub(crate) fn response(
        &mut self,
        out: &mut Vec<u8>,
        stream: u32,
        status: StatusCode,
        fields: &HeaderMap,
        end: bool,
    ) {
        let flags = flag::END_HEADERS | if end { flag::END_STREAM } else { 0 };
        self.write(out, flags, stream, |_, block| {
            if status == StatusCode::OK {
                block.push(STATUS_200);
            } else {
                block.push(STATUS_OTHER);
                write_text(status.as_str().as_bytes(), block);
            }
            write_fields(fields, block);
        });
    }

    /// Writes any other trailers.
    pub(crate) fn trailers(&mut self, out: &mut Vec<u8>, stream: u32, fields: &HeaderMap) {
        self.write(out, flag::END_HEADERS | flag::END_STREAM, stream, |_, block| write_fields(fields, block));
    }

    /// Writes a block as HEADERS and CONTINUATION frames.
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        flags: u8,
        stream: u32,
        fields: impl FnOnce(&mut Self, &mut Vec<u8>),
    ) {
        let mut block = Vec::with_capacity(64);
        if std::mem::take(&mut self.shrink) {
            block.push(SHRINK_TO_ZERO);
        }
        fields(self, &mut block);
        let mut pieces = block.chunks(frames::LARGEST_PAYLOAD);
        let mut next = pieces.next().unwrap_or_default();
        let (mut kind, mut flags) = (kind::HEADERS, flags);
        for after in pieces {
            frames::write(out, kind, flags & !flag::END_HEADERS, stream, next);
            (kind, flags, next) = (kind::CONTINUATION, flag::END_HEADERS, after);
        }
        frames::write(out, kind, flags, stream, next);
    }
}

fn write_fields(fields: &HeaderMap, block: &mut Vec<u8>) {
    for (name, value) in fields {
        block.push(NEW);
        write_text(name.as_str().as_bytes(), block);
        write_text(value.as_bytes(), block);
    }
}

#[cfg(test)]
mod tests {
    use fluke_hpack::Decoder;

    use super::*;

    /// Decodes the fields of each block in `bytes`.
    fn read(peer: &mut Decoder<'_>, bytes: &[u8]) -> Vec<String> {
        let (mut rest, mut block, mut answers) = (bytes, Vec::new(), Vec::new());
        while let Some((frame, length)) = frames::first(rest).unwrap() {
            block.extend_from_slice(frame.payload);
            rest = &rest[length..];
            if frame.has(flag::END_HEADERS) {
                let fields = peer.decode(&std::mem::take(&mut block)).unwrap();
                let text =
                    |(name, value)| [name, value].map(|text| String::from_utf8(text).unwrap()).join("=");
                answers.push(fields.into_iter().map(text).collect::<Vec<_>>().join(" "));
            }
        }
        answers
    }

    #[test]
    fn the_same_is_said_in_fewer_bytes_from_the_second_time_on() {
        let (mut blocks, mut peer) = (ResponseHeaders::default(), Decoder::new());
        let expected = [":status=200 content-type=application/grpc", "grpc-status=0"];
        for time in 0..3 {
            let mut out = Vec::new();
            blocks.begin(&mut out, 1);
            // The response of another stream comes between the two.
            blocks.begin(&mut out, 3);
            blocks.response(&mut out, 5, StatusCode::NOT_FOUND, &HeaderMap::new(), true);
            blocks.end_ok(&mut out, 1);
            if time > 0 {
                assert_eq!(out.len(), 4 * frames::HEAD + 2 + 2 + 5 + 1);
            }
            assert_eq!(read(&mut peer, &out), [expected[0], expected[0], ":status=404", expected[1]]);
        }
    }

    #[test]
    fn a_peer_with_less_room_is_told_that_none_is_used() {
        for first in [true, false] {
            let (mut blocks, mut peer) = (ResponseHeaders::default(), Decoder::new());
            let mut out = Vec::new();
            if first {
                blocks.begin(&mut out, 1);
                blocks.end_ok(&mut out, 1);
            }
            blocks.set_table_size(100);
            blocks.set_table_size(0);
            blocks.set_table_size(4096);
            for stream in [3, 5] {
                blocks.begin(&mut out, stream);
                blocks.end_ok(&mut out, stream);
            }
            let shrunk: Vec<_> =
                out.windows(10).filter(|it| it[3] == kind::HEADERS && it[9] == 0x20).collect();
            assert_eq!(shrunk.len(), 1, "once");
            assert_eq!(read(&mut peer, &out).len(), if first { 6 } else { 4 });
            peer.set_max_table_size(0);
            let mut out = Vec::new();
            blocks.begin(&mut out, 7);
            assert_eq!(read(&mut peer, &out), [":status=200 content-type=application/grpc"]);
        }
    }

    #[test]
    fn what_is_longer_than_a_frame_goes_on_in_the_next() {
        let (mut blocks, mut out) = (ResponseHeaders::default(), Vec::new());
        let mut fields = HeaderMap::new();
        fields.insert("grpc-message", "x".repeat(40_000).parse().unwrap());
        blocks.trailers(&mut out, 1, &fields);
        assert_eq!(read(&mut Decoder::new(), &out)[0].len(), "grpc-message=".len() + 40_000);
    }
}
