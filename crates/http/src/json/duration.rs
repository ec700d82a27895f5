//! `google.protobuf.Duration` in JSON: `"1.5s"`.

use super::text::{number, padded};

/// The largest number of seconds, about ten thousand years.
const MOST: i64 = 315_576_000_000;

/// Parses seconds with at most nine digits after the point.
pub(super) fn parse(text: &str) -> Option<(i64, i32)> {
    let text = text.strip_suffix('s')?;
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(fraction) {
        return None;
    }
    let seconds = whole.parse::<i64>().ok().filter(|seconds| *seconds <= MOST)?;
    let nanos = nanos(fraction)?;
    if seconds == MOST && nanos > 0 {
        return None;
    }
    Some(if negative { (-seconds, -nanos) } else { (seconds, nanos) })
}

/// Parses the digits after the point.
pub(super) fn nanos(fraction: &str) -> Option<i32> {
    let missing = 9_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    Some(fraction.parse::<i32>().ok()? * 10_i32.pow(missing))
}

/// Appends it with 0, 3, 6 or 9 digits after the point.
pub(super) fn write(out: &mut Vec<u8>, seconds: i64, nanos: i32) {
    if seconds < 0 || nanos < 0 {
        out.push(b'-');
    }
    number(out, seconds.unsigned_abs());
    fraction(out, nanos.unsigned_abs());
    out.push(b's');
}

/// Appends a fraction of a second with its point; nothing if it is 0.
pub(super) fn fraction(out: &mut Vec<u8>, nanos: u32) {
    let (digits, width) = match nanos {
        0 => return,
        _ if nanos.is_multiple_of(1_000_000) => (nanos / 1_000_000, 3),
        _ if nanos.is_multiple_of(1_000) => (nanos / 1_000, 6),
        _ => (nanos, 9),
    };
    out.push(b'.');
    padded(out, digits.into(), width);
}
