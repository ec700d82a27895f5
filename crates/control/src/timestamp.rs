//! Times of the store as messages have them.

use prost_types::Timestamp;

/// Returns a time in microseconds since 1970.
pub(crate) fn timestamp(micros: u64) -> Timestamp {
    Timestamp {
        seconds: i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX),
        nanos: i32::try_from(micros % 1_000_000 * 1_000).unwrap_or_default(),
    }
}
