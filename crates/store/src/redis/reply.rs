//! Decodes replies of scripts: packed doubles, and the reasons of failed requests. `lua/README.md` is the contract.

use std::borrow::Cow;
use std::slice::ChunksExact;

use redis::Value;

use crate::StoreError;

/// The error text for a key whose value looks like a state of its limit and is not one. `lua/numbers.lua` has it too.
pub(super) const NOT_A_STATE: &str = "the key holds something else than this limit's state";

/// Returns the error for a reply that breaks the contract.
pub(super) fn garbled() -> StoreError {
    StoreError::Refused("the script's reply is not one that this version understands".into())
}

/// Splits a reply into its packed doubles and the reasons of failed requests.
pub(super) fn packed(reply: &Value) -> Result<(&[u8], &[Value]), StoreError> {
    match reply {
        Value::BulkString(packed) => Ok((packed, &[])),
        Value::Array(parts) => match parts.split_first() {
            Some((Value::BulkString(packed), reasons)) => Ok((packed, reasons)),
            _ => Err(garbled()),
        },
        _ => Err(garbled()),
    }
}

/// Iterates over the doubles in a string.
#[inline]
pub(super) fn doubles(bytes: &[u8]) -> ReplyDoubles<'_> {
    ReplyDoubles(bytes.chunks_exact(8))
}

/// A named iterator, so that its `next` is inlined: a decision reads ten doubles.
pub(super) struct ReplyDoubles<'a>(ChunksExact<'a, u8>);

impl Iterator for ReplyDoubles<'_> {
    type Item = f64;

    #[inline(always)]
    fn next(&mut self) -> Option<f64> {
        let bytes = self.0.next()?;
        Some(bytes.try_into().map_or(f64::NAN, f64::from_le_bytes))
    }
}

/// Converts a double to an integer, if it is whole and below 2^53.
#[inline]
pub(super) fn whole(number: f64) -> Result<u64, StoreError> {
    const LIMIT: f64 = (1_u64 << 53) as f64;
    // Within these bounds the round trip is exact.
    let is_whole = (0.0..LIMIT).contains(&number) && (number as u64) as f64 == number;
    if is_whole { Ok(number as u64) } else { Err(garbled()) }
}

/// Reads the next of `numbers` as an integer.
pub(super) fn next_whole(numbers: &mut impl Iterator<Item = f64>) -> Result<u64, StoreError> {
    whole(numbers.next().ok_or_else(garbled)?)
}

/// Returns the bytes of a string.
pub(super) fn bytes(value: &Value) -> Result<&[u8], StoreError> {
    if let Value::BulkString(bytes) = value { Ok(bytes) } else { Err(garbled()) }
}

/// Returns a string as text; invalid UTF-8 is replaced.
pub(super) fn text(value: &Value) -> Result<Cow<'_, str>, StoreError> {
    Ok(String::from_utf8_lossy(bytes(value)?))
}

/// Maps the next of `reasons`, for a lease or queue operation: an error of its key.
pub(super) fn next_key_error<'a>(
    reasons: &mut impl Iterator<Item = &'a Value>,
) -> Result<StoreError, StoreError> {
    let reason = text(reasons.next().ok_or_else(garbled)?)?;
    let is_unreadable = reason.starts_with("WRONGTYPE");
    Ok(if is_unreadable { StoreError::Unreadable } else { StoreError::Refused }(reason.into()))
}
