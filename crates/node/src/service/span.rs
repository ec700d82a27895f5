//! Conversion between durations of messages and microseconds.

use prost_types::Duration;
use weir_units::Micros;

use crate::limiter::InvalidField;

/// The longest duration that a message may have, in seconds: 10,000 years, as protobuf defines it.
const LONGEST_DURATION: u64 = 315_576_000_000;

/// Converts a duration of a request, rounded down to the microsecond. A negative or malformed one is rejected with
/// `bound`, the bound of `field`.
pub fn micros(field: &'static str, span: &Duration, bound: &str) -> Result<Micros, InvalidField> {
    let nanos = u64::try_from(span.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let refused = |bound: String| {
        Err(InvalidField { field, value: format!("{} s and {} ns", span.seconds, span.nanos), bound })
    };
    match u64::try_from(span.seconds).ok().zip(nanos) {
        Some((seconds, _)) if seconds > LONGEST_DURATION => {
            refused(format!("a span has at most {LONGEST_DURATION} s"))
        }
        Some((seconds, nanos)) => Ok(Micros(seconds * 1_000_000 + nanos / 1_000)),
        None => refused(bound.to_owned()),
    }
}

/// Converts to a duration. Exact: both sides are integers, and our spans are far below the largest duration.
pub fn duration(span: Micros) -> Duration {
    let nanos = (span.0 % 1_000_000) * 1_000;
    Duration {
        seconds: i64::try_from(span.0 / 1_000_000).unwrap_or(i64::MAX),
        nanos: i32::try_from(nanos).unwrap_or(0),
    }
}
