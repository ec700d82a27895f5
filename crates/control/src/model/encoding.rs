//! The bytes of a record without its key. `lua/control/start.lua` reads and writes the same header.
//!
//! ```text
//!   1 byte    format, 1
//!   1 byte    1 for a deletion, 0 otherwise
//!   8 bytes   version
//!   8 bytes   change
//!   8 bytes   expires_at
//!   the rest  body                                all numbers big-endian
//! ```

use super::record::ControlRecord;
use super::{MAX_CONTROL_BODY, MAX_CONTROL_KEY, MAX_CONTROL_VERSION};

const FORMAT: u8 = 1;

/// Length of what precedes the body, in bytes.
pub const HEADER_BYTES: usize = 26;

/// Bytes that are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlDecodeError {
    /// The record has the format of another version of Weir.
    #[error("it is of format {0}, and this version of Weir reads format {FORMAT}")]
    Format(u8),
    /// The header is incomplete or has impossible numbers, or something is too long.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

/// Appends the bytes of a record without its key.
pub fn encode_record(record: &ControlRecord, out: &mut Vec<u8>) {
    out.reserve(HEADER_BYTES + record.body.len());
    out.extend([FORMAT, u8::from(record.deleted)]);
    for number in [record.version, record.change, record.expires_at] {
        out.extend(number.to_be_bytes());
    }
    out.extend_from_slice(&record.body);
}

/// Reads what [`encode_record`] wrote.
pub fn decode_record(key: &str, bytes: &[u8]) -> Result<ControlRecord, ControlDecodeError> {
    let damaged = |what| Err(ControlDecodeError::Damaged(what));
    match bytes.first() {
        Some(&FORMAT) => {}
        Some(&format) => return Err(ControlDecodeError::Format(format)),
        None => return damaged("it is empty"),
    }
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
        return damaged("its header is too short");
    };
    let number = |at: usize| {
        let bytes = header.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_be_bytes)
    };
    let record = ControlRecord {
        key: key.into(),
        version: number(2),
        change: number(10),
        expires_at: number(18),
        deleted: header.get(1) == Some(&1),
        body: body.into(),
    };
    if header.get(1).is_some_and(|deleted| *deleted > 1) {
        return damaged("it neither is a deletion nor is none");
    }
    if !(1..=MAX_CONTROL_KEY).contains(&key.len()) || body.len() > MAX_CONTROL_BODY {
        return damaged("its key or its body has a wrong length");
    }
    match fault(&record) {
        Some(what) => damaged(what),
        None => Ok(record),
    }
}

/// Returns why no store would ever write this record.
#[must_use]
pub fn fault(record: &ControlRecord) -> Option<&'static str> {
    if record.version == 0 || record.version > MAX_CONTROL_VERSION {
        return Some("its version is out of range");
    }
    if record.expires_at > MAX_CONTROL_VERSION {
        return Some("its end is out of range");
    }
    if record.deleted && record.expires_at == 0 {
        return Some("a deletion has a time");
    }
    (record.is_generation() && record.expires_at != 0).then_some("a generation never ends")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ControlRecord {
        ControlRecord {
            key: "override/a".into(),
            version: 1 << 50,
            change: u64::MAX,
            expires_at: 0,
            deleted: false,
            body: (*b"50/s").into(),
        }
    }

    fn bytes(record: &ControlRecord) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_record(record, &mut bytes);
        bytes
    }

    #[test]
    fn what_is_written_is_read_again() {
        let deletion = ControlRecord { deleted: true, expires_at: 7, ..record() };
        let generation = ControlRecord { key: "generation/burst".into(), body: [].into(), ..record() };
        for record in [record(), deletion, generation] {
            assert_eq!(decode_record(&record.key, &bytes(&record)), Ok(record));
        }
    }

    /// Redis keeps these bytes over releases.
    #[test]
    fn the_layout_stays() {
        let record = ControlRecord { version: 0x0102, change: 3, expires_at: 0x0405, ..record() };
        let expected = b"\x01\x00\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\x04\x0550/s";
        assert_eq!(bytes(&record), expected);
    }

    #[test]
    fn anything_else_is_an_error() {
        let whole = bytes(&record());
        for length in 0..HEADER_BYTES {
            assert!(matches!(decode_record("k", &whole[..length]), Err(ControlDecodeError::Damaged(_))));
        }
        assert!(decode_record("", &whole).is_err());
        assert!(decode_record(&"k".repeat(MAX_CONTROL_KEY + 1), &whole).is_err());
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            decode_record("k", &bytes)
        };
        assert_eq!(with(0, 2), Err(ControlDecodeError::Format(2)));
        for (at, byte) in [(1, 2), (1, 1), (2, 1), (18, 1)] {
            assert!(matches!(with(at, byte), Err(ControlDecodeError::Damaged(_))), "{at} {byte}");
        }
        let long = ControlRecord { body: vec![0; MAX_CONTROL_BODY + 1].into(), ..record() };
        assert!(decode_record("k", &bytes(&long)).is_err());
        let none = ControlRecord { version: 0, ..record() };
        assert!(decode_record("k", &bytes(&none)).is_err());
        let ending = ControlRecord { expires_at: 1, ..record() };
        assert!(decode_record("generation/a", &bytes(&ending)).is_err());
    }
}
