//! A reply, whichever backend gave it.

use std::borrow::Cow;

use super::garbled;
use crate::StoreError;

/// A reply to a command or a script.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkReply {
    /// Nothing.
    Nil,
    /// A whole number.
    Number(i64),
    /// Another number.
    Double(f64),
    /// A string.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<LinkReply>),
    /// A status, or what no feature reads.
    Other,
}

impl LinkReply {
    /// Returns the bytes of a string.
    pub fn bytes(&self) -> Result<&[u8], StoreError> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(garbled()) }
    }

    /// Returns a string as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> Result<Cow<'_, str>, StoreError> {
        Ok(String::from_utf8_lossy(self.bytes()?))
    }
}
