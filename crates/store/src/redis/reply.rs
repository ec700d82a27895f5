//! Decodes replies of scripts: packed doubles, and the reasons of failed requests. `lua/README.md` is the contract.

use std::borrow::Cow;

use redis::Value;

use crate::StoreError;
pub(super) use crate::scripts::{doubles_of as doubles, garbled, next_whole, whole};

/// The error text for a key whose value looks like a state of its limit and is not one. `lua/numbers.lua` has it too.
pub(super) const NOT_A_STATE: &str = "the key holds something else than this limit's state";

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

fn bytes(value: &Value) -> Result<&[u8], StoreError> {
    if let Value::BulkString(bytes) = value { Ok(bytes) } else { Err(garbled()) }
}

/// Returns a string as text; invalid UTF-8 is replaced.
pub(super) fn text(value: &Value) -> Result<Cow<'_, str>, StoreError> {
    Ok(String::from_utf8_lossy(bytes(value)?))
}
