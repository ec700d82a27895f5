//! Header blocks as they are read: RFC 7541.

mod table;

use httlib_huffman::DecoderSpeed;

use self::table::{Entry, Table};

/// Room for texts that is kept from one block to the next.
const KEPT: usize = 1_024;

/// The largest table that every HTTP/2 endpoint must take, and that we take.
pub(crate) const TABLE: usize = 4_096;

/// Reads the header blocks of one connection, all and in order.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    table: Table,
    /// Texts that had to be decoded.
    name: Vec<u8>,
    value: Vec<u8>,
}

/// One header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Whether HTTP/2 allows such a name and value. Known since the field was first spelled out.
    pub(crate) allowed: bool,
}

/// A block that cannot be read, and after it no other of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl Decoder {
    /// Gives `each` every field of a block.
    pub(crate) fn read(&mut self, block: &[u8], mut each: impl FnMut(Field<'_>)) -> Result<(), Unreadable> {
        let (mut rest, mut begun) = (block, false);
        while let Some(&first) = rest.first() {
            let resize = first & 0xe0 == 0x20;
            // Only at the beginning of a block.
            if resize && begun {
                return Err(Unreadable);
            }
            begun |= !resize;
            self.next(first, &mut rest, &mut each).ok_or(Unreadable)?;
        }
        if self.name.capacity().max(self.value.capacity()) > KEPT {
            (self.name, self.value) = Default::default();
        }
        Ok(())
    }

    /// The next field, by the bits that it begins with.
    fn next(&mut self, first: u8, rest: &mut &[u8], each: &mut impl FnMut(Field<'_>)) -> Option<()> {
        match first {
            0x80.. => each(self.table.field(number(rest, 7)?)?),
            0x40.. => {
                let (field, is_name) = self.literal(rest, 6)?;
                each(field);
                let entry = Entry::of(field, is_name);
                self.table.add(entry);
            }
            0x20.. => {
                let largest = number(rest, 5)?;
                (largest <= TABLE).then(|| self.table.resize(largest))?;
            }
            _ => each(self.literal(rest, 4)?.0),
        }
        Some(())
    }

    /// A field that is spelled out, but perhaps for its name; and whether the name is allowed. One in the table
    /// is not looked at again: two bytes can refer to thousands.
    fn literal<'a, 'b: 'a>(&'a mut self, rest: &mut &'b [u8], bits: u32) -> Option<(Field<'a>, bool)> {
        let Self { table, name: name_room, value: value_room } = self;
        let (name, is_name) = match number(rest, bits)? {
            0 => {
                let name = text(rest, name_room)?;
                (name, is_name(name))
            }
            place => table.name(place)?,
        };
        let value = text(rest, value_room)?;
        Some((Field { name, value, allowed: is_name && is_value(value) }, is_name))
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

/// A text as it is, or decoded into `room` from Huffman's code.
fn text<'a, 'b: 'a>(rest: &mut &'b [u8], room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let is_huffman = *rest.first()? >= 0x80;
    let length = number(rest, 7)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    if !is_huffman {
        return Some(bytes);
    }
    room.clear();
    httlib_huffman::decode(bytes, room, DecoderSpeed::FourBits).ok()?;
    // The library is lenient about what fills the last byte, and RFC 7541 is not.
    let mut again = Vec::with_capacity(length);
    httlib_huffman::encode(room, &mut again).ok()?;
    (again == bytes).then_some(room)
}

/// Lower case, visible, and a colon at the beginning only: RFC 9113, 8.2.1.
fn is_name(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b":").unwrap_or(name);
    !rest.is_empty()
        && rest.iter().all(|byte| matches!(byte, b'!'..=b'~') && !byte.is_ascii_uppercase() && *byte != b':')
}

fn is_value(value: &[u8]) -> bool {
    let is_blank = |end: Option<&u8>| matches!(end, Some(b' ' | b'\t'));
    !value.iter().any(|byte| matches!(byte, 0 | b'\n' | b'\r'))
        && !is_blank(value.first())
        && !is_blank(value.last())
}

/// Appends a text as it is: not in Huffman's code.
pub(crate) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    const PREFIX: usize = 0x7f;
    if text.len() < PREFIX {
        out.push(text.len() as u8);
    } else {
        out.push(PREFIX as u8);
        prost::encoding::encode_varint((text.len() - PREFIX) as u64, out);
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Unreadable> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut fields = Vec::new();
        decoder.read(block, |field| fields.push((text(field.name), text(field.value))))?;
        Ok(fields)
    }

    fn status(decoder: &mut Decoder, block: &[u8]) -> Result<String, Unreadable> {
        Ok(read(decoder, block)?.remove(0).1)
    }

    /// RFC 7541, C.6.1 and C.6.2: in Huffman's code, with headers that push others out of the table.
    #[test]
    fn huffmans_code_is_read() {
        let first = b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\
            \xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\
            \x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3";
        let mut decoder = Decoder::default();
        decoder.table.resize(256);
        assert_eq!(status(&mut decoder, first).unwrap(), "302");
        assert_eq!(status(&mut decoder, b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf").unwrap(), "307");
        assert_eq!(status(&mut decoder, b"\x88\xc1\xc0\xbf").unwrap(), "200");
        assert_eq!(read(&mut decoder, b"\xc2"), Err(Unreadable), "302 has been pushed out");
    }

    /// Names that were spelled out once, and their fields: what is allowed of each is known without a look.
    #[test]
    fn a_name_from_the_table_is_what_it_was() {
        let mut decoder = Decoder::default();
        let mut allowed = |block: &[u8]| {
            let mut all = Vec::new();
            decoder.read(block, |field| all.push((field.name.to_vec(), field.allowed))).unwrap();
            all
        };
        // A good name with a bad value, then a bad name with a good value.
        allowed(b"\x40\x01a\x01\0\x40\x01A\x01b");
        let names = [(b"A".to_vec(), false), (b"a".to_vec(), true)];
        assert_eq!(allowed(b"\x0f\x2f\x01c\x0f\x30\x01c"), names);
        assert_eq!(allowed(b"\x7e\x01c\x7f\x01\x01c"), [names[0].clone(), names[1].clone()]);
        // They are the newest now, and both have good values.
        assert_eq!(allowed(b"\xbe\xbf\xc1"), [names[1].clone(), names[0].clone(), (b"a".to_vec(), false)]);
    }

    #[test]
    fn no_room_is_kept_of_what_was_large() {
        let mut decoder = Decoder::default();
        decoder.value.reserve(100_000);
        read(&mut decoder, b"\x88").unwrap();
        assert!(decoder.value.capacity() <= KEPT);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for block in [
            &b"\x80"[..],
            b"\xbe",
            b"\xff",
            b"\xff\xff\xff\xff\xff\x01",
            b"\x40\x05ab",
            b"\x3f\xff\x7f",
            b"\x88\x20",
        ] {
            assert_eq!(read(&mut Decoder::default(), block), Err(Unreadable), "{block:?}");
        }
        assert_eq!(status(&mut Decoder::default(), b"\x20\x3f\xe1\x1f\x88").unwrap(), "200");
    }

    #[test]
    fn what_http_does_not_allow_is_told_each_time() {
        let mut server = Decoder::default();
        let mut allowed = |block: &[u8]| {
            let mut all = Vec::new();
            server.read(block, |field| all.push(field.allowed)).unwrap();
            all
        };
        assert_eq!(
            allowed(b"\x40\x01a\x01b\x40\x01A\x01b\x40\x01a\x01\0\x40\x03a:b\0\x40\x02:b\0"),
            [true, false, false, false, true]
        );
        assert_eq!(
            allowed(b"\xbe\xbf\xc0\xc1\xc2\x00\x00\x00\x00\x01 \x00"),
            [true, false, false, false, true, false, false]
        );
    }

    proptest! {
        #[test]
        fn no_block_panics(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20)) {
            let mut decoder = Decoder::default();
            for block in blocks {
                let _ = decoder.read(&block, |_| {});
            }
        }

        /// Another's encoder, and a table that is always too small for what comes.
        #[test]
        fn places_stay_right_while_the_table_turns_over(
            numbers in prop::collection::vec((0_usize..40, 0_i32..20), 1..400),
        ) {
            let (mut peer, mut decoder) = (fluke_hpack::Encoder::new(), Decoder::default());
            for (other, status) in numbers {
                let sent = [
                    (format!("x-header-{other}"), "v".repeat(other * 7)),
                    ("grpc-status".to_owned(), status.to_string()),
                ];
                let block = peer.encode(sent.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
                prop_assert_eq!(&read(&mut decoder, &block).unwrap(), &sent);
            }
        }
    }
}
