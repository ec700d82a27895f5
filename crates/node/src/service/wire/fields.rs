//! Reads the fields of a protobuf message in order, borrowed from its bytes.

use ascii::AsciiStr;
use prost::encoding::decode_varint;

/// Nesting bound of groups (a deprecated wire type).
const DEEPEST_GROUP: usize = 16;

/// The unread rest of a message.
#[derive(Debug, Clone, Copy)]
pub struct MessageFields<'a>(&'a [u8]);

/// A field's value on the wire.
#[derive(Debug, Clone, Copy)]
pub enum FieldValue<'a> {
    /// A varint: number or bool.
    Number(u64),
    /// Length-delimited: text, bytes or message.
    Bytes(&'a [u8]),
    /// Wire types that our messages do not use.
    Other,
}

/// Bytes that are not a message of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message cannot be read: {0}")]
pub struct Malformed(pub &'static str);

impl<'a> MessageFields<'a> {
    /// Begins with the first field.
    #[inline]
    pub const fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// Number of unread bytes.
    pub const fn left(&self) -> usize {
        self.0.len()
    }

    /// The next field's number and value.
    #[inline]
    #[expect(clippy::should_implement_trait)] // with `?`, `Result<Option>` reads better than the items of an iterator
    pub fn next(&mut self) -> Result<Option<(u32, FieldValue<'a>)>, Malformed> {
        // Nearly every field is a short text or message with a small number.
        if let [key @ 0x08..=0x7f, length @ 0..=0x7f, rest @ ..] = self.0
            && key & 7 == 2
            && let Some((bytes, rest)) = rest.split_at_checked(usize::from(*length))
        {
            self.0 = rest;
            return Ok(Some((u32::from(key >> 3), FieldValue::Bytes(bytes))));
        }
        self.next_of_any_kind()
    }

    fn next_of_any_kind(&mut self) -> Result<Option<(u32, FieldValue<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.key()?;
        Ok(Some((number, self.value(number, kind, DEEPEST_GROUP)?)))
    }

    #[inline]
    fn key(&mut self) -> Result<(u32, u8), Malformed> {
        let key =
            u32::try_from(self.varint()?).map_err(|_| Malformed("the number of a field is too large"))?;
        match key >> 3 {
            0 => Err(Malformed("a field has the number 0")),
            number => Ok((number, (key & 7) as u8)),
        }
    }

    #[inline]
    fn value(&mut self, number: u32, kind: u8, depth: usize) -> Result<FieldValue<'a>, Malformed> {
        match kind {
            0 => Ok(FieldValue::Number(self.varint()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                Ok(FieldValue::Bytes(self.take(length)?))
            }
            1 => self.take(8).map(|_| FieldValue::Other),
            5 => self.take(4).map(|_| FieldValue::Other),
            3 => self.skip_group(number, depth).map(|()| FieldValue::Other),
            _ => Err(Malformed("a field has a wire type that does not exist here")),
        }
    }

    fn skip_group(&mut self, group: u32, depth: usize) -> Result<(), Malformed> {
        let depth = depth.checked_sub(1).ok_or(Malformed("groups lie too deep in one another"))?;
        loop {
            match self.key()? {
                (number, 4) if number == group => return Ok(()),
                (number, kind) => self.value(number, kind, depth)?,
            };
        }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        if let [byte @ 0..=0x7f, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        decode_varint(&mut self.0).map_err(|_| Malformed("it ends within a number, or a number is too large"))
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let cut = self.0.split_at_checked(length).ok_or(Malformed("it ends within a field"))?;
        self.0 = cut.1;
        Ok(cut.0)
    }
}

impl<'a> FieldValue<'a> {
    /// The value as a number, or an error.
    #[inline]
    pub const fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(Malformed("a number is expected where there is none")),
        }
    }

    /// The value as bytes, or an error.
    #[inline]
    pub const fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed("a text or message is expected where there is none")),
        }
    }

    /// The value as text, or an error.
    #[inline]
    pub fn text(self) -> Result<&'a str, Malformed> {
        let bytes = self.bytes()?;
        // Nearly all names are short and ASCII; checking that takes a third of the instructions of `from_utf8`.
        match AsciiStr::from_ascii(bytes) {
            Ok(ascii) => Ok(ascii.as_str()),
            Err(_) => std::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8")),
        }
    }

    /// The value as text, or an error. Returns `known` itself if they are equal.
    #[inline]
    pub(crate) fn text_like(self, known: &'a str) -> Result<&'a str, Malformed> {
        match self {
            Self::Bytes(bytes) if !known.is_empty() && bytes == known.as_bytes() => Ok(known),
            _ => self.text(),
        }
    }
}
