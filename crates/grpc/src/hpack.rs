//! HPACK (RFC 7541): decoding header blocks, and the literals that responses are encoded with.

mod huffman;
mod table;

use self::table::{DynamicTable, TableEntry};

/// Capacity in bytes up to which the string buffers are kept from one block to the next.
const KEPT: usize = 1_024;

/// Size of the dynamic table in bytes: the default of SETTINGS_HEADER_TABLE_SIZE.
pub const TABLE: usize = 4_096;

/// Decodes the header blocks of one connection. It must get all of them, in their order.
#[derive(Debug, Default)]
pub struct Decoder {
    table: DynamicTable,
    /// Buffers for Huffman-decoded strings.
    name: Vec<u8>,
    value: Vec<u8>,
    /// The value of [`Decoder::changes`].
    changes: u64,
}

/// One header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField<'a> {
    /// The name of the field.
    pub name: &'a [u8],
    /// The value of the field.
    pub value: &'a [u8],
    /// True if HTTP/2 allows this name and value. A field of the dynamic table is checked only once.
    pub allowed: bool,
}

/// A header block that cannot be decoded. No later block of the connection can be decoded either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecodable;

impl Decoder {
    /// Decodes a block and passes every field to `each`.
    pub fn read(&mut self, block: &[u8], mut each: impl FnMut(HeaderField<'_>)) -> Result<(), Undecodable> {
        let (mut rest, mut begun) = (block, false);
        while let Some(&first) = rest.first() {
            let resize = first & 0xe0 == 0x20;
            // Size updates are allowed only at the beginning of a block.
            if resize && begun {
                return Err(Undecodable);
            }
            begun |= !resize;
            self.next(first, &mut rest, &mut each).ok_or(Undecodable)?;
        }
        if self.name.capacity().max(self.value.capacity()) > KEPT {
            (self.name, self.value) = Default::default();
        }
        Ok(())
    }

    /// Returns the number of changes of the dynamic table. While it stays, equal blocks have equal fields.
    #[inline]
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Decodes the next field. Its first bits tell its representation.
    fn next(&mut self, first: u8, rest: &mut &[u8], each: &mut impl FnMut(HeaderField<'_>)) -> Option<()> {
        match first {
            0x80.. => each(self.table.field(number(rest, 7)?)?),
            0x40.. => {
                let (field, is_name) = self.literal(rest, 6)?;
                each(field);
                let entry = TableEntry::new(field, is_name);
                self.table.add(entry);
                self.changes += 1;
            }
            0x20.. => {
                let largest = number(rest, 5)?;
                (largest <= TABLE).then(|| self.table.resize(largest))?;
                self.changes += 1;
            }
            _ => each(self.literal(rest, 4)?.0),
        }
        Some(())
    }

    /// Decodes a literal field (6.2), and returns whether its name is allowed. Names of the table are not checked
    /// again: two bytes can refer to thousands.
    fn literal<'a, 'b: 'a>(&'a mut self, rest: &mut &'b [u8], bits: u32) -> Option<(HeaderField<'a>, bool)> {
        let Self { table, name: name_buffer, value: value_buffer, .. } = self;
        let (name, is_name) = match number(rest, bits)? {
            0 => {
                let name = text(rest, name_buffer)?;
                (name, is_name(name))
            }
            place => table.name(place)?,
        };
        let value = text(rest, value_buffer)?;
        Some((HeaderField { name, value, allowed: is_name && is_value(value) }, is_name))
    }
}

/// Decodes an integer (5.1) that begins in the last `bits` bits of the first byte.
fn number(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let full = (1 << bits) - 1;
    let (&first, after) = rest.split_first()?;
    *rest = after;
    let mut number = usize::from(first) & full;
    if number < full {
        return Some(number);
    }
    // Four more bytes cover every valid length and index.
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

/// Decodes a string literal (5.2). A Huffman-coded one is decoded into `buffer`.
fn text<'a, 'b: 'a>(rest: &mut &'b [u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let is_huffman = *rest.first()? >= 0x80;
    let length = number(rest, 7)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    if !is_huffman {
        return Some(bytes);
    }
    buffer.clear();
    huffman::decode(bytes, buffer)?;
    Some(buffer)
}

/// True for a valid field name (RFC 9113, 8.2.1): lower case, visible, and a colon at the beginning only.
fn is_name(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b":").unwrap_or(name);
    !rest.is_empty()
        && rest.iter().all(|byte| matches!(byte, b'!'..=b'~') && !byte.is_ascii_uppercase() && *byte != b':')
}

fn is_value(value: &[u8]) -> bool {
    !value.iter().any(|byte| matches!(byte, 0 | b'\n' | b'\r'))
}

/// Appends a string literal without Huffman coding (RFC 7541, 5.2).
pub fn write_text(text: &[u8], out: &mut Vec<u8>) {
    const PREFIX: usize = 0x7f;
    if text.len() < PREFIX {
        out.push(text.len() as u8);
    } else {
        out.push(PREFIX as u8);
        let mut rest = text.len() - PREFIX;
        while rest >= 0x80 {
            out.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Undecodable> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut fields = Vec::new();
        decoder.read(block, |field| fields.push((text(field.name), text(field.value))))?;
        Ok(fields)
    }

    /// The table remembers for each entry if its name, and the whole field, are allowed: neither is checked again.
    #[test]
    fn a_name_from_the_table_is_what_it_was() {
        let mut decoder = Decoder::default();
        let mut allowed = |block: &[u8]| {
            let mut all = Vec::new();
            decoder.read(block, |field| all.push((field.name.to_vec(), field.allowed))).unwrap();
            all
        };
        // A valid name with an invalid value, then an invalid name with a valid value.
        allowed(b"\x40\x01a\x01\0\x40\x01A\x01b");
        let names = [(b"A".to_vec(), false), (b"a".to_vec(), true)];
        assert_eq!(allowed(b"\x0f\x2f\x01c\x0f\x30\x01c"), names);
        assert_eq!(allowed(b"\x7e\x01c\x7f\x01\x01c"), [names[0].clone(), names[1].clone()]);
        // The names of the newest entries, both with a valid value.
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

        /// A foreign encoder, and a table that is always too small for its fields.
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
