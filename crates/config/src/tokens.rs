//! The file of tokens: names and digests, never the tokens themselves.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::callers::is_token_name;
use super::unreadable::unreadable;
use super::values::quote;

/// Maximum size of the file, in bytes.
const MAX_TOKENS_FILE: usize = 8 << 20;

/// Bytes of a digest.
const DIGEST: usize = 32;

/// The line that says that a file without tokens is meant to be so.
const NONE: &str = "# none";

/// A line of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenEntry {
    /// The name of the token's holder.
    pub name: Box<str>,
    /// The SHA-256 of the token.
    pub digest: [u8; DIGEST],
    /// The end of its validity, in seconds since 1970.
    pub end: Option<u64>,
}

impl fmt::Debug for TokenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenEntry").field("name", &self.name).field("end", &self.end).finish_non_exhaustive()
    }
}

/// Reads a file of tokens, or all mistakes in it, each with its line. No mistake shows a digest.
pub fn read_tokens(path: &Path) -> Result<Vec<TokenEntry>, Vec<String>> {
    let bytes = read_bounded(path, MAX_TOKENS_FILE).map_err(|error| vec![error])?;
    let text = String::from_utf8(bytes).map_err(|_| vec![format!("{}: is not UTF-8", path.display())])?;
    parse(&text).map_err(|mistakes| {
        mistakes.into_iter().map(|(line, reason)| format!("{}:{line}: {reason}", path.display())).collect()
    })
}

/// Reads a file of at most `most` bytes.
pub fn read_bounded(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("{} cannot be read: {}", path.display(), unreadable(path, &error)))?;
    if bytes.len() > most {
        return Err(format!("{} is larger than {most} bytes", path.display()));
    }
    Ok(bytes)
}

fn parse(text: &str) -> Result<Vec<TokenEntry>, Vec<(usize, String)>> {
    let (mut entries, mut mistakes) = (Vec::new(), Vec::new());
    let mut is_meant = false;
    let mut seen: HashMap<[u8; DIGEST], usize> = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            is_meant |= line == NONE;
            continue;
        }
        match entry(line) {
            Ok(entry) => match seen.insert(entry.digest, number) {
                Some(first) => mistakes.push((number, format!("has the digest of line {first}"))),
                None => entries.push(entry),
            },
            Err(reason) => mistakes.push((number, reason)),
        }
    }
    // A file that was cut off, or not written yet, must not take all tokens away.
    if entries.is_empty() && mistakes.is_empty() && !is_meant {
        mistakes.push((1, format!("has no token; a line `{NONE}` says that there shall be none")));
    }
    if mistakes.is_empty() { Ok(entries) } else { Err(mistakes) }
}

fn entry(line: &str) -> Result<TokenEntry, String> {
    let mut words = line.split_ascii_whitespace();
    let (name, digest, end) = (words.next(), words.next(), words.next());
    let (Some(name), Some(digest), None) = (name, digest, words.next()) else {
        return Err("a line has a name, the SHA-256 of a token in hex, and perhaps an end".to_owned());
    };
    if !is_token_name(name) {
        return Err("the name must be 1 to 64 of a-z, 0-9, `.`, `_` and `-`".to_owned());
    }
    let digest =
        hex(digest).ok_or("the digest must be 64 digits of hex; `weir token new NAME` writes the line")?;
    let end = match end {
        Some(end) => Some(
            rfc3339(end).ok_or_else(|| format!("{} is no end, such as 2027-01-31T00:00:00Z", quote(end)))?,
        ),
        None => None,
    };
    Ok(TokenEntry { name: name.into(), digest, end })
}

fn hex(text: &str) -> Option<[u8; DIGEST]> {
    let mut digest = [0; DIGEST];
    if text.len() != 2 * DIGEST || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

/// Parses a time as RFC 3339 has it, in seconds since 1970. Fractions are dropped.
fn rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't'])?;
    let number = |text: &str, digits: usize, most: u64| {
        let is_plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number: &u64| is_plain && *number <= most)
    };
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = (number(year, 4, 9999)?, number(month, 2, 12)?, number(day, 2, 31)?);
    if parts.next().is_some() || year < 1970 || month == 0 || day == 0 || day > days_of(year, month) {
        return None;
    }
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = (time.get(..zone)?, time.get(zone..)?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = time.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (number(hour, 2, 23)?, number(minute, 2, 59)?, number(second, 2, 60)?);
    if parts.next().is_some() {
        return None;
    }
    let seconds = days_before(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let (sign, offset) = zone.split_at(1);
    if sign.eq_ignore_ascii_case("z") {
        return offset.is_empty().then_some(seconds);
    }
    let (hours, minutes) = offset.split_once(':')?;
    let offset = number(hours, 2, 23)? * 3600 + number(minutes, 2, 59)? * 60;
    if sign == "+" { seconds.checked_sub(offset) } else { seconds.checked_add(offset) }
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let of_years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let of_months: u64 = (1..month).map(|month| days_of(year, month)).sum();
    of_years + of_months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_times_of_rfc_3339() {
        assert_eq!(rfc3339("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(rfc3339("2026-11-23T21:00:00.5Z"), Some(1_795_467_600));
        assert_eq!(rfc3339("2026-11-23T22:00:00+01:00"), Some(1_795_467_600));
        assert_eq!(rfc3339("2024-02-29T00:00:00z"), Some(1_709_164_800));
        for bad in [
            "",
            "2026-11-23",
            "2026-11-23 21:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-23T24:00:00Z",
            "2026-11-23T21:00Z",
            "2026-11-23T21:00:00",
            "1969-12-31T23:59:59Z",
            "2026-11-23T21:00:00.Z",
            "1970-01-01T00:00:00+01:00",
            "+026-11-23T21:00:00Z",
        ] {
            assert_eq!(rfc3339(bad), None, "{bad}");
        }
    }

    /// A file that was cut off, or is about to be written, must not take all tokens away.
    #[test]
    fn a_file_without_tokens_is_a_mistake_unless_it_says_so() {
        for empty in ["", "\n\n", "# tokens of the shop\n", "#none\n"] {
            let mistakes = parse(empty).unwrap_err();
            assert!(
                mistakes.len() == 1 && mistakes[0].1.contains("a line `# none`"),
                "{empty:?}: {mistakes:?}"
            );
        }
        assert_eq!(parse("# tokens of the shop\n  # none\n"), Ok(Vec::new()));
    }

    #[test]
    fn every_mistake_has_its_line_and_shows_no_digest() {
        let digest = "AB".repeat(32);
        let good =
            parse(&format!("# tokens\n\nshop {digest}\nshop {} 2027-01-01T00:00:00Z\n", "cd".repeat(32)));
        let good = good.unwrap();
        assert_eq!((&*good[0].name, good[0].digest, good[0].end), ("shop", [0xab; 32], None));
        assert_eq!(good[1].end, Some(1_798_761_600));
        let text = format!(
            "Shop {digest}\nshop {digest}\nshop\nother {digest}\nshop {} x\nshop abc\n",
            "cd".repeat(32)
        );
        let mistakes = parse(&text).unwrap_err();
        assert_eq!(mistakes.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
        assert!(!format!("{mistakes:?}{good:?}").to_lowercase().contains("abab"), "{mistakes:?}");
    }
}
