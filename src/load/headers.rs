//! Header blocks, RFC 7541: one request's, that is always the same, and what responses say with theirs.

mod request;
mod table;

use std::borrow::Cow;
use std::sync::Arc;

use httlib_huffman::DecoderSpeed;

pub(super) use self::request::RequestBlock;
use self::table::{Header, Name, Table};
use super::frames::Broken;

/// The largest table that an HTTP/2 endpoint must take, and that we take.
const TABLE: usize = 4_096;

/// Reads the header blocks of one connection's responses, all and in order.
#[derive(Debug)]
pub(super) struct ResponseBlocks {
    table: Table,
}

/// What a block says about its call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The HTTP status; in a block of trailers there is none.
    pub(super) http: Option<u16>,
    /// The gRPC status; in the first of two blocks there is none.
    pub(super) grpc: Option<i32>,
    /// What is wrong, for people.
    pub(super) message: Option<Arc<str>>,
}

const UNREADABLE: Broken = "it sent headers that cannot be read";

impl ResponseBlocks {
    pub(super) const fn new() -> Self {
        Self { table: Table::new(TABLE) }
    }

    pub(super) fn read(&mut self, block: &[u8]) -> Result<Said, Broken> {
        let (mut said, mut rest) = (Said::default(), block);
        while !rest.is_empty() {
            match self.field(&mut rest).ok_or(UNREADABLE)? {
                Header::Http(status) => said.http = Some(status),
                Header::Grpc(status) => said.grpc = Some(status),
                Header::Message(message) => said.message = Some(message),
                Header::Other => {}
            }
        }
        Ok(said)
    }

    /// The next field, by the bits that it begins with.
    fn field(&mut self, rest: &mut &[u8]) -> Option<Header> {
        match *rest.first()? {
            0x80.. => self.table.header(number(rest, 7)?),
            0x40.. => {
                let (header, name, name_length, value_length) = self.literal(rest, 6)?;
                self.table.add(header.clone(), name, name_length, value_length);
                Some(header)
            }
            0x20.. => {
                let largest = number(rest, 5)?;
                (largest <= TABLE).then(|| self.table.resize(largest))?;
                Some(Header::Other)
            }
            _ => self.literal(rest, 4).map(|(header, ..)| header),
        }
    }

    /// A header that is spelled out, but perhaps for its name: it, and the lengths of name and value.
    fn literal(&self, rest: &mut &[u8], bits: u32) -> Option<(Header, Name, usize, usize)> {
        let (name, name_length) = match number(rest, bits)? {
            0 => {
                let name = text(rest)?;
                (Name::of(&name), name.len())
            }
            place => self.table.name(place)?,
        };
        let value = text(rest)?;
        let header = match name {
            Name::Http => Header::Http(parsed(&value).unwrap_or_default()),
            Name::Grpc => Header::Grpc(parsed(&value).unwrap_or(UNKNOWN)),
            Name::Message => Header::Message(percent_decoded(&value).into()),
            Name::Other => Header::Other,
        };
        Some((header, name, name_length, value.len()))
    }
}

/// A number that begins in the last so many bits of the first byte.
fn number(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let full = (1 << bits) - 1;
    let (&first, after) = rest.split_first()?;
    *rest = after;
    let mut number = usize::from(first) & full;
    if number < full {
        return Some(number);
    }
    // Four more bytes say more than anybody has to say.
    for shift in [0, 7, 14, 21] {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number += usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A text, as it is or in Huffman's code.
fn text<'a>(rest: &mut &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let is_huffman = *rest.first()? >= 0x80;
    let length = number(rest, 7)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    if !is_huffman {
        return Some(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(2 * length);
    httlib_huffman::decode(bytes, &mut out, DecoderSpeed::FourBits).ok()?;
    Some(Cow::Owned(out))
}

const UNKNOWN: i32 = 2;

fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// gRPC writes what is no printable ASCII in a message as %XX.
fn percent_decoded(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let code =
            after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As servers send them: first spelled out, then as places in their table.
    #[test]
    fn statuses_are_read_however_they_are_written() {
        let mut blocks = ResponseBlocks::new();
        let mut server = fluke_hpack::Encoder::new();
        let mut read =
            |headers: &[(&[u8], &[u8])]| blocks.read(&server.encode(headers.iter().copied())).unwrap();
        for _ in 0..3 {
            assert_eq!(read(&[(b":status", b"200"), (b"date", b"today")]).http, Some(200));
            assert_eq!(read(&[(b":status", b"418")]).http, Some(418));
            assert_eq!(read(&[(b"grpc-status", b"0")]).grpc, Some(0));
            let said = read(&[(b"grpc-status", b"5"), (b"grpc-message", b"no%20such%zz %E2%82%AC")]);
            assert_eq!((said.grpc, said.message.as_deref()), (Some(5), Some("no such%zz €")));
        }
        assert_eq!(read(&[(b"grpc-status", b"many")]).grpc, Some(UNKNOWN));
    }

    /// RFC 7541, C.6.1 and C.6.2: in Huffman's code, with headers that push others out of the table.
    #[test]
    fn huffmans_code_is_read() {
        let first = b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\
            \xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\
            \x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3";
        let mut blocks = ResponseBlocks { table: Table::new(256) };
        assert_eq!(blocks.read(first).unwrap().http, Some(302));
        assert_eq!(blocks.read(b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf").unwrap().http, Some(307));
        assert_eq!(blocks.read(b"\x88\xc1\xc0\xbf").unwrap().http, Some(200));
        assert_eq!(blocks.read(b"\xc2"), Err(UNREADABLE), "302 has been pushed out");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for block in
            [&b"\x80"[..], b"\xbe", b"\xff", b"\xff\xff\xff\xff\xff\x01", b"\x40\x05ab", b"\x3f\xff\x7f"]
        {
            assert_eq!(ResponseBlocks::new().read(block), Err(UNREADABLE), "{block:?}");
        }
        assert_eq!(ResponseBlocks::new().read(b"\x20\x3f\xe1\x1f\x88").unwrap().http, Some(200));
    }

    proptest! {
        #[test]
        fn no_block_panics(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20)) {
            let mut reader = ResponseBlocks::new();
            for block in blocks {
                let _ = reader.read(&block);
            }
        }

        /// Another's encoder, and a table that is always too small for what comes.
        #[test]
        fn places_stay_right_while_the_table_turns_over(
            numbers in prop::collection::vec((0_usize..40, 0_i32..20), 1..400),
        ) {
            let (mut server, mut reader) = (fluke_hpack::Encoder::new(), ResponseBlocks::new());
            for (other, status) in numbers {
                let (name, value) = (format!("x-header-{other}"), "v".repeat(other * 7));
                let status_text = status.to_string();
                let headers =
                    [(name.as_bytes(), value.as_bytes()), (&b"grpc-status"[..], status_text.as_bytes())];
                let said = reader.read(&server.encode(headers)).unwrap();
                prop_assert_eq!(said.grpc, Some(status));
            }
        }
    }
}
