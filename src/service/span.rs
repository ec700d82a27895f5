//! Spans of time between messages and microseconds.

use prost_types::Duration;

use crate::limiter::InvalidField;
use crate::units::Micros;

/// A span of a request, rounded down to the microsecond. One that is negative or malformed is refused with `bound`,
/// which says what `field` may be.
pub(super) fn micros(field: &'static str, span: &Duration, bound: &str) -> Result<Micros, InvalidField> {
    let nanos = u64::try_from(span.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    match u64::try_from(span.seconds).ok().zip(nanos) {
        Some((seconds, nanos)) => Ok(Micros(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000))),
        None => Err(InvalidField {
            field,
            value: format!("{} s and {} ns", span.seconds, span.nanos),
            bound: bound.to_owned(),
        }),
    }
}

/// A span of an answer. Exact: both sides are integers, and no span of ours comes near the largest duration.
pub(super) fn duration(span: Micros) -> Duration {
    let nanos = (span.0 % 1_000_000) * 1_000;
    Duration {
        seconds: i64::try_from(span.0 / 1_000_000).unwrap_or(i64::MAX),
        nanos: i32::try_from(nanos).unwrap_or(0),
    }
}
