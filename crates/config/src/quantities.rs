//! Values with units: durations, rates and sizes. They are integers, so nothing is rounded.

use weir_core::algorithm::Rate;
use weir_units::Micros;

use super::unit_words;
use super::values::{Digits, Scalar, digits, quote};

/// Parses a duration: `10s`, `1m30s`, `250ms`.
pub(super) fn duration(scalar: Scalar<'_>) -> Result<Micros, String> {
    span(scalar.text)
}

/// Parses a duration from `min` to `max`.
pub(super) fn duration_within(scalar: Scalar<'_>, min: Micros, max: Micros) -> Result<Micros, String> {
    super::values::within(duration(scalar)?, min, max)
}

/// Parses a rate: `30/1m`, `5/s`.
pub(super) fn rate(scalar: Scalar<'_>) -> Result<Rate, String> {
    rate_of(scalar.text)
}

/// Parses a rate in the syntax of the configuration: `30/1m`, `5/s`. An error is a sentence that quotes the text.
pub fn rate_of(text: &str) -> Result<Rate, String> {
    let Some((count, period)) = text.split_once('/') else {
        return Err(format!("{} is not a rate; write COUNT/DURATION, such as 30/1m or 5/s", quote(text)));
    };
    let count = match digits(count) {
        Digits::Number(count) => count,
        Digits::TooLarge => {
            return Err(format!("the count of {} is too large: at most {}", quote(text), u64::MAX));
        }
        Digits::None => {
            let example = whole_rate(count, period)
                .unwrap_or_else(|| "COUNT/DURATION, such as 30/1m or 5/s".to_owned());
            return Err(format!("the count of {} is not a whole number; write {example}", quote(text)));
        }
    };
    let one_unit = UNITS.iter().find(|(unit, _)| *unit == period);
    let period = match one_unit {
        Some((_, micros)) => Micros(*micros),
        None => match unit_words::unit_of(period) {
            Some(unit) => return Err(format!("{} is not a rate; write {count}/{unit}", quote(text))),
            None => span(period).map_err(|reason| format!("the period of {}: {reason}", quote(text)))?,
        },
    };
    Ok(Rate { count, period })
}

/// Writes a rate with a fraction, such as `0.5/s`, in whole numbers: `1/2s`.
fn whole_rate(count: &str, period: &str) -> Option<String> {
    let (whole, fraction) = count.split_once('.')?;
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let Digits::Number(scaled) = digits(&format!("{whole}{fraction}")) else { return None };
    let period = match UNITS.iter().find(|(unit, _)| *unit == period) {
        Some((_, micros)) => *micros,
        None => span(period).ok()?.0,
    };
    let common = common_divisor(scaled, scale);
    let (count, times) = (scaled.checked_div(common)?, scale / common);
    let period = Micros(period.checked_mul(times)?);
    (count > 0).then(|| format!("{count}/{}", written_duration(period)))
}

const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Parses a number of bytes: `512MiB`, `1GB`, `65536`.
pub(super) fn size(scalar: Scalar<'_>) -> Result<usize, String> {
    let shown = quote(scalar.text);
    let (number, unit) = split_number(scalar.text);
    let factor = SIZES.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    match (digits(number), factor) {
        (Digits::Number(number), Some(factor)) => number
            .checked_mul(factor)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| format!("{shown} is too large: at most {} bytes", usize::MAX)),
        (Digits::TooLarge, Some(_)) => Err(format!("{shown} is too large: at most {} bytes", usize::MAX)),
        _ => Err(format!(
            "{shown} is not a size; write a whole number of bytes or with a unit, such as 512MiB \
                          (units: KiB, MiB, GiB, KB, MB, GB)"
        )),
    }
}

/// Formats a duration in the largest unit that it is a multiple of. Weeks are written as days.
pub(super) fn written_duration(span: Micros) -> String {
    let units = UNITS.iter().filter(|(unit, _)| *unit != "w");
    match units.into_iter().find(|(_, micros)| span.0 > 0 && span.0.is_multiple_of(*micros)) {
        Some((unit, micros)) => format!("{}{unit}", span.0 / micros),
        None => "0s".to_owned(),
    }
}

/// Formats a number of bytes in the largest unit that it is a multiple of.
pub fn written_size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// The units of time, in descending order.
const UNITS: [(&str, u64); 7] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

const SIZES: [(&str, u64); 7] = [
    ("", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Parses a duration in the syntax of the configuration: `10s`, `1m30s`, `250ms`. An error is a sentence that quotes
/// the text.
pub fn span(text: &str) -> Result<Micros, String> {
    let shown = quote(text);
    if let Digits::Number(_) | Digits::TooLarge = digits(text) {
        return Err(format!("{shown} has no unit; write one of us, ms, s, m, h, d, w after it, such as 10s"));
    }
    let malformed = || {
        format!(
            "{shown} is not a duration; write whole numbers with units, such as 10s, 250ms or 1m30s \
                 (units: us, ms, s, m, h, d, w)"
        )
    };
    let too_long = || format!("{shown} is too long: a duration is at most 100 years");
    let (mut total, mut smaller, mut rest) = (0_u64, UNITS.as_slice(), text);
    while !rest.is_empty() {
        let (number, after) = split_number(rest);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let number = match digits(number) {
            Digits::Number(number) => number,
            Digits::TooLarge => return Err(too_long()),
            Digits::None => return Err(malformed()),
        };
        let Some((_, micros)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(
                unit_words::instead(text, unit, |meant| span(meant).is_ok()).unwrap_or_else(malformed)
            );
        };
        let Some(place) = smaller.iter().position(|(name, _)| *name == unit) else {
            return Err(format!("{shown}: units go from large to small, each at most once, as in 1m30s"));
        };
        smaller = smaller.get(place + 1..).unwrap_or_default();
        total = number.checked_mul(*micros).and_then(|part| total.checked_add(part)).ok_or_else(too_long)?;
        rest = next;
    }
    if text.is_empty() { Err(malformed()) } else { Ok(Micros(total)) }
}

/// Splits `text` after its leading digits (and `_`).
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    text.split_at(end)
}
