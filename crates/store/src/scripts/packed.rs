//! Packed doubles in the replies of scripts. `lua/README.md` is the contract.

use std::slice::ChunksExact;

use crate::StoreError;

/// Returns the error for a reply that breaks the contract.
pub fn garbled() -> StoreError {
    StoreError::Refused("the script's reply is not one that this version understands".into())
}

/// Iterates over the doubles in a string.
#[inline]
pub fn doubles_of(bytes: &[u8]) -> ReplyDoubles<'_> {
    ReplyDoubles(bytes.chunks_exact(8))
}

/// The doubles in a string. A named iterator, so that its `next` is inlined: a decision reads ten doubles.
pub struct ReplyDoubles<'a>(ChunksExact<'a, u8>);

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
pub fn whole(number: f64) -> Result<u64, StoreError> {
    const LIMIT: f64 = (1_u64 << 53) as f64;
    // Within these bounds the round trip is exact.
    let is_whole = (0.0..LIMIT).contains(&number) && (number as u64) as f64 == number;
    if is_whole { Ok(number as u64) } else { Err(garbled()) }
}

/// Reads the next of `numbers` as an integer.
pub fn next_whole(numbers: &mut impl Iterator<Item = f64>) -> Result<u64, StoreError> {
    whole(numbers.next().ok_or_else(garbled)?)
}
