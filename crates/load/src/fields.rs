//! Reads the fields of a protobuf message in place.

/// One field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerValue<'a> {
    /// A number, a bool or an enum.
    Number(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// 4 or 8 bytes that are skipped.
    Fixed,
}

/// Iterator over the fields of `message`. Ends early at malformed bytes: see [`AnswerFields::is_whole`].
pub(super) struct AnswerFields<'a> {
    rest: &'a [u8],
    broken: bool,
}

impl<'a> AnswerFields<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message, broken: false }
    }

    /// True if everything could be read.
    pub(super) const fn is_whole(&self) -> bool {
        !self.broken
    }

    fn read(&mut self) -> Option<(u64, AnswerValue<'a>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => AnswerValue::Number(self.varint()?),
            1 => self.take(8).map(|_| AnswerValue::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                AnswerValue::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| AnswerValue::Fixed)?,
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for AnswerFields<'a> {
    type Item = (u64, AnswerValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.broken {
            return None;
        }
        let field = self.read();
        self.broken = field.is_none();
        field
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::{AnswerFields, AnswerValue};
    use weir_proto::v1::Error;

    #[test]
    fn reads_what_prost_writes() {
        let message = Error { code: 5, message: "no".to_owned() }.encode_to_vec();
        let mut fields = AnswerFields::new(&message);
        assert_eq!(fields.next(), Some((1, AnswerValue::Number(5))));
        assert_eq!(fields.next(), Some((2, AnswerValue::Bytes(b"no"))));
        assert_eq!(fields.next(), None);
        assert!(fields.is_whole());
    }

    #[test]
    fn stops_at_what_is_no_field() {
        let broken: [&[u8]; 5] = [&[0x12, 9, 1], &[0x08, 0x80], &[0x0b], &[0x09, 1], &[0xff; 11]];
        for message in broken {
            let mut fields = AnswerFields::new(message);
            assert_eq!(fields.by_ref().count(), 0, "{message:?}");
            assert!(!fields.is_whole(), "{message:?}");
        }
    }
}
