//! The caller's deadline: the `grpc-timeout` header of the gRPC specification.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName};
use tonic::Status;

use weir_time::clock;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Returns the caller's deadline. A header that cannot be parsed counts as none, as everywhere in gRPC.
#[must_use]
pub fn deadline_of(headers: &HeaderMap) -> Option<Instant> {
    let timeout = parse(headers.get(&GRPC_TIMEOUT)?.to_str().ok()?)?;
    clock::monotonic().checked_add(timeout)
}

/// Returns the status of a call whose deadline has passed.
#[must_use]
pub fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline that the caller set has passed")
}

/// Parses a timeout: at most eight digits and a unit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3_600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn timeouts_are_read_as_the_specification_writes_them() {
        let readable = [
            ("2H", Duration::from_secs(7_200)),
            ("3M", Duration::from_secs(180)),
            ("4S", Duration::from_secs(4)),
            ("50m", Duration::from_millis(50)),
            ("99999999u", Duration::from_micros(99_999_999)),
            ("0n", Duration::ZERO),
        ];
        for (text, duration) in readable {
            assert_eq!(parse(text), Some(duration), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "+1S", "1.5S", "123456789S", " 1S", "1é"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
