//! Values as Go's libraries read them: `strconv.ParseBool`, `ParseInt` with base 0, `ParseFloat`, `time.ParseDuration`.

use weir_config::foreign::quote;

/// Parses a boolean.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!("{} is neither true nor false", quote(text))),
    }
}

/// Parses a whole number; a prefix `0x`, `0o`, `0b` or `0` gives the base, and `_` may separate digits.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    let wrong = || format!("{} is not a whole number", quote(text));
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, &*lower),
    };
    // A separator stands between digits, or between the prefix and a digit.
    let groups = digits.strip_prefix('_').filter(|_| base != 10).unwrap_or(digits);
    let is_number = |group: &str| !group.is_empty() && group.chars().all(|char| char.is_digit(base));
    if !groups.split('_').all(is_number) {
        return Err(wrong());
    }
    let number = i128::from_str_radix(&groups.replace('_', ""), base).map_err(|_| wrong())?;
    i64::try_from(if negative { -number } else { number })
        .map_err(|_| format!("{} does not fit into 64 bits", quote(text)))
}

/// Parses a number with a fraction.
pub(super) fn float(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("{} is not a number", quote(text)))
}

/// Units of durations with their nanoseconds; longer names first.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration such as `1m30s`, `150us`, `1.5h` or `0` into nanoseconds.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("{} is not a duration, such as 10s or 1m30s", quote(text));
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(wrong());
    }
    let (mut rest, mut total) = (unsigned, 0_u128);
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit()).ok_or_else(wrong)?;
        let (whole, after) = rest.split_at(digits);
        let (fraction, after) = match after.strip_prefix('.') {
            None => ("", after),
            Some(after) => {
                after.split_at(after.find(|char: char| !char.is_ascii_digit()).unwrap_or(after.len()))
            }
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(wrong());
        }
        let end = after.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        total = total.checked_add(part(whole, fraction, *nanos).ok_or_else(wrong)?).ok_or_else(wrong)?;
        rest = after;
    }
    let total = i64::try_from(total).map_err(|_| wrong())?;
    Ok(if text.starts_with('-') { -total } else { total })
}

/// The nanoseconds of one number with its unit; digits below a nanosecond are dropped.
fn part(whole: &str, fraction: &str, nanos: u64) -> Option<u128> {
    let number = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u64>().ok() };
    let kept = fraction.get(..fraction.len().min(18))?;
    let scale = 10_u128.pow(u32::try_from(kept.len()).ok()?);
    let whole = u128::from(number(whole)?) * u128::from(nanos);
    Some(whole + u128::from(number(kept)?) * u128::from(nanos) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        for (text, number) in [
            ("8081", 8081),
            ("0x1F91", 8081),
            ("017", 15),
            ("0o17", 15),
            ("0b11", 3),
            ("-1", -1),
            ("1_000", 1000),
        ] {
            assert_eq!(integer(text), Ok(number), "{text}");
        }
        assert_eq!(integer("+0"), Ok(0));
        assert_eq!(integer("0x_1f"), Ok(31));
        for text in ["", "x", "08", "1.5", "1__0", "_1", "1_", "0x", "9223372036854775808", " 1", "--1"] {
            assert!(integer(text).is_err(), "{text}");
        }
        assert_eq!((float("0.8"), float("1e-1")), (Ok(0.8), Ok(0.1)));
        assert!(float("0,8").is_err() && float("inf").is_err() && float("").is_err());
    }

    #[test]
    fn booleans_are_read_as_go_reads_them() {
        for text in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(boolean(text), Ok(true), "{text}");
        }
        for text in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(boolean(text), Ok(false), "{text}");
        }
        for text in ["", "yes", "tRUE", "on", " true"] {
            assert!(boolean(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("1m30s", 90_000_000_000),
            ("150us", 150_000),
            ("150µs", 150_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("-2ms", -2_000_000),
            ("24h", 86_400_000_000_000),
            ("0.0000000015s", 1),
        ] {
            assert_eq!(duration(text), Ok(nanos), "{text}");
        }
        for text in ["", "1", "s", ".s", "1d", "1s ", "10 s", "-", "1h1", "9999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
