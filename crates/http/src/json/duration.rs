//! `google.protobuf.Duration` in JSON: `"1.5s"`.

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

/// Formats it with 0, 3, 6 or 9 digits after the point.
pub(super) fn format(seconds: i64, nanos: i32) -> String {
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    format!("{sign}{}{}s", seconds.unsigned_abs(), fraction(nanos.unsigned_abs()))
}

/// Formats a fraction of a second with its point; empty if it is 0.
pub(super) fn fraction(nanos: u32) -> String {
    match nanos {
        0 => String::new(),
        _ if nanos.is_multiple_of(1_000_000) => format!(".{:03}", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1_000) => format!(".{:06}", nanos / 1_000),
        _ => format!(".{nanos:09}"),
    }
}
