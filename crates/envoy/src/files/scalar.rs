//! Scalars as the reference's YAML library resolves them, by YAML 1.1: `yes` is true, `010` is 8, and an unquoted
//! text may be read as a number.

/// A resolved plain scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plain<'t> {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(&'t str),
}

/// Resolves an unquoted scalar.
pub(super) fn plain(text: &str) -> Plain<'_> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Plain::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Plain::Bool(false);
        }
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return Plain::Text(text);
    }
    if let Some(number) = infinite(text) {
        return Plain::Float(number);
    }
    let digits = text.replace('_', "");
    match integer(&digits) {
        Some(number) => match i64::try_from(number) {
            Ok(number) => Plain::Int(number),
            Err(_) => Plain::Float(number as f64),
        },
        None if is_float(&digits) => Plain::Float(digits.parse().unwrap_or(f64::NAN)),
        None => Plain::Text(text),
    }
}

fn infinite(text: &str) -> Option<f64> {
    let (sign, rest) = match text.split_at_checked(1) {
        Some(("-", rest)) => (-1.0, rest),
        Some(("+", rest)) => (1.0, rest),
        _ => (1.0, text),
    };
    match rest {
        ".inf" | ".Inf" | ".INF" => Some(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if rest == text => Some(f64::NAN),
        _ => None,
    }
}

/// Parses a whole number with an optional base prefix.
fn integer(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixes = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)];
    let based = prefixes.iter().find_map(|(prefix, base)| Some((text.strip_prefix(prefix)?, *base)));
    let (digits, base) = match based {
        Some(based) => based,
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = i128::from_str_radix(digits, base).ok()?;
    let number = if negative { -number } else { number };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

/// True for digits with at most one point and an optional exponent.
fn is_float(text: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = |text: &str| text.strip_prefix(['+', '-']).unwrap_or(text).to_owned();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (unsigned(mantissa), Some(unsigned(exponent))),
        None => (unsigned(text), None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent_fits = exponent.is_none_or(|digits| !digits.is_empty() && all_digits(&digits));
    has_digits && all_digits(whole) && all_digits(fraction) && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::{Plain, plain};

    #[test]
    fn scalars_are_what_yaml_1_1_makes_of_them() {
        for (text, expected) in [
            ("yes", Plain::Bool(true)),
            ("Off", Plain::Bool(false)),
            ("010", Plain::Int(8)),
            ("0x10", Plain::Int(16)),
            ("-5", Plain::Int(-5)),
            ("1_000", Plain::Int(1000)),
            ("0", Plain::Int(0)),
            ("0.25", Plain::Float(0.25)),
            (".5", Plain::Float(0.5)),
            ("1e3", Plain::Float(1000.0)),
            ("1.", Plain::Float(1.0)),
            ("-.inf", Plain::Float(f64::NEG_INFINITY)),
            ("18446744073709551615", Plain::Float(18_446_744_073_709_551_615.0)),
            ("1.2.3", Plain::Text("1.2.3")),
            ("10.0.0.0/8", Plain::Text("10.0.0.0/8")),
            ("089", Plain::Float(89.0)),
            ("+", Plain::Text("+")),
            (".", Plain::Text(".")),
            ("1e", Plain::Text("1e")),
            ("2001-01-01", Plain::Text("2001-01-01")),
            ("minute", Plain::Text("minute")),
            ("-", Plain::Text("-")),
            ("0x", Plain::Text("0x")),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }
}
