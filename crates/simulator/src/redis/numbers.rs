//! Numbers as Redis and C read and write them.

use super::error_text::SimulatedError;

/// Reads an integer as Redis does: no sign but a minus, no spaces, no leading zeros.
pub(super) fn integer(text: &[u8]) -> Result<i64, SimulatedError> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = std::str::from_utf8(text).ok().filter(|_| is_plain);
    text.and_then(|text| text.parse().ok()).ok_or(SimulatedError::NOT_AN_INTEGER)
}

/// The text that C makes of bytes: it ends at a zero.
pub(super) fn c_text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reads a double, also an infinite one.
pub(super) fn double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|number: &f64| !number.is_nan())
}

/// A score as Redis 7.0 writes it.
pub(super) fn double_text(number: f64) -> String {
    general(number, 17)
}

/// A number that a script gives to a command.
pub(super) fn argument_text(number: f64) -> String {
    const EXACT: f64 = 1e17;
    if number.fract() == 0.0 && number.abs() < EXACT && (number != 0.0 || number.is_sign_positive()) {
        return (number as i64).to_string();
    }
    general(number, 17)
}

/// The conversion of C from a double to a 64-bit integer: what does not fit is the least one.
pub(super) fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// `%.{digits}g` of C.
fn general(number: f64, digits: usize) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{:.*e}", digits - 1, number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let most = i32::try_from(digits).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= most {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let places = usize::try_from(most - 1 - exponent).unwrap_or_default();
    without_zeros(&format!("{number:.places$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_strictly_as_redis_does() {
        for (text, number) in
            [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(integer(text.as_bytes()), Ok(number));
        }
        for text in ["", "-", "+1", " 1", "1 ", "01", "-0", "1.0", "1e3", "9223372036854775808", "\u{661}"] {
            assert_eq!(integer(text.as_bytes()), Err(SimulatedError::NOT_AN_INTEGER), "{text:?}");
        }
    }

    #[test]
    fn doubles_are_written_as_c_does() {
        for (number, text) in [
            (0.1, "0.10000000000000001"),
            (3.0, "3"),
            (-0.0, "-0"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e-7, "1.4999999999999999e-07"),
            (123_456_789.125, "123456789.125"),
            (1e300, "1.0000000000000001e+300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(double_text(number), text);
            assert_eq!(argument_text(number), text);
        }
    }

    #[test]
    fn what_fits_no_integer_is_the_least_one() {
        assert_eq!([truncated(1.9), truncated(-1.9)], [1, -1]);
        assert_eq!([truncated(1e19), truncated(f64::NAN), truncated(f64::INFINITY)], [i64::MIN; 3]);
    }
}
