//! `google.protobuf.Timestamp` in JSON: RFC 3339.

use super::duration::{fraction, nanos};

/// The seconds of the first and the last moment: years 1 to 9999.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

/// Parses a moment, such as `2026-11-27T06:00:00.5Z`.
pub(super) fn parse(text: &str) -> Option<(i64, i32)> {
    let (date, time) = text.split_once(['T', 't'])?;
    let (year, month, day) = three(date, '-', [4, 2, 2])?;
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let (hour, minute, second) = three(clock, ':', [2, 2, 2])?;
    let is_plain = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let in_month = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !is_plain || !in_month || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    (FIRST..=LAST).contains(&seconds).then_some((seconds, nanos(fraction)?))
}

/// Formats a moment in UTC; `None` if it has no year from 1 to 9999.
pub(super) fn format(seconds: i64, nanos: i32) -> Option<String> {
    if !(FIRST..=LAST).contains(&seconds) || !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    let mut text = date.into_bytes();
    fraction(&mut text, nanos.unsigned_abs());
    text.push(b'Z');
    String::from_utf8(text).ok()
}

fn three(text: &str, by: char, lengths: [usize; 3]) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(by);
    let mut next = |length| {
        let part = parts.next()?;
        let is_plain = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_plain)
    };
    let three = (next(lengths[0])?, next(lengths[1])?, next(lengths[2])?);
    parts.next().is_none().then_some(three)
}

fn offset(zone: &str) -> Option<i64> {
    let (sign, text) = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", text) => (1, text),
        ("-", text) => (-1, text),
        _ => return None,
    };
    let (hours, minutes) = text.split_once(':')?;
    let two = |text: &str| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| is_plain)
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn days_of(year: i64, month: i64) -> i64 {
    let next = if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) };
    next - days(year, month, 1)
}

/// Days since 1970-01-01 in the Gregorian calendar. A year begins in March here, so that a leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`].
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}
