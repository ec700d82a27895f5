//! Parsers of scalars.
//!
//! Each function takes a [`Scalar`]. Its error is a sentence that names the value and the bound; the caller adds the
//! position.

use std::fmt::Display;
use std::net::SocketAddr;

use weir_core::key::KeySecret;

pub(super) use super::MAX_SECRET;

/// An unparsed scalar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar<'t> {
    /// The text of the value, without quotes.
    pub(super) text: &'t str,
    /// True if it was quoted, and so is text and not a number.
    pub(super) quoted: bool,
}

/// Parses a whole number. `_` may group digits, as in `1_000_000`.
pub(super) fn integer(scalar: Scalar<'_>) -> Result<u64, String> {
    let shown = quote(scalar.text);
    match digits(scalar.text) {
        _ if scalar.quoted => {
            Err(format!("{shown} is text because of its quotes; write a bare whole number"))
        }
        Digits::Number(number) => Ok(number),
        Digits::TooLarge => Err(format!("{shown} is too large: at most {}", u64::MAX)),
        Digits::None => Err(format!("{shown} is not a whole number of at least 0")),
    }
}

/// Parses a whole number from `min` to `max`.
pub(super) fn integer_within(scalar: Scalar<'_>, min: usize, max: usize) -> Result<usize, String> {
    let number = integer(scalar)?;
    within(usize::try_from(number).unwrap_or(usize::MAX), min, max)
}

/// Parses `true` or `false`.
pub(super) fn boolean(scalar: Scalar<'_>) -> Result<bool, String> {
    match (scalar.text, scalar.quoted) {
        ("true", false) => Ok(true),
        ("false", false) => Ok(false),
        ("true" | "false", true) => {
            Err(format!("{} is text because of its quotes; write it bare", quote(scalar.text)))
        }
        _ => Err(format!("{} is neither true nor false", quote(scalar.text))),
    }
}

/// Parses a non-empty text.
pub(super) fn text(scalar: Scalar<'_>) -> Result<String, String> {
    if scalar.text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(scalar.text.to_owned()) }
}

/// Parses a text of 1 to `max` bytes.
pub(super) fn text_within(scalar: Scalar<'_>, max: usize) -> Result<String, String> {
    let text = text(scalar)?;
    if text.len() > max {
        return Err(format!("{} is {} bytes long: at most {max}", quote(&text), text.len()));
    }
    Ok(text)
}

/// Parses one of `choices`.
pub(super) fn choice<T: Copy>(scalar: Scalar<'_>, choices: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, meaning)) = choices.iter().find(|(word, _)| *word == scalar.text) {
        return Ok(*meaning);
    }
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    Err(format!("{} is not one of {}", quote(scalar.text), words.join(", ")))
}

/// Parses an address to listen on.
pub(super) fn address(scalar: Scalar<'_>) -> Result<SocketAddr, String> {
    let help = "is not an IP address with a port, such as 127.0.0.1:8081 or [::1]:8081";
    scalar.text.parse().map_err(|_| format!("{} {help}", quote(scalar.text)))
}

/// Parses a secret. Errors never show it.
pub(super) fn secret(scalar: Scalar<'_>) -> Result<KeySecret, String> {
    secret_text(scalar).map(KeySecret::from_text)
}

/// Checks the length of a secret. Errors never show it.
pub(super) fn secret_text(scalar: Scalar<'_>) -> Result<&str, String> {
    match scalar.text.len() {
        0 => Err("must not be empty".to_owned()),
        length if length > MAX_SECRET => Err(format!("is {length} bytes long: at most {MAX_SECRET}")),
        _ => Ok(scalar.text),
    }
}

/// Returns `value` if it is from `min` to `max`.
pub(super) fn within<T: PartialOrd + Display>(value: T, min: T, max: T) -> Result<T, String> {
    if value < min || value > max {
        return Err(format!("{value} is out of bounds: it must be from {min} to {max}"));
    }
    Ok(value)
}

/// A parsed run of digits.
pub(super) enum Digits {
    /// A number.
    Number(u64),
    /// A number beyond 64 bits.
    TooLarge,
    /// Not a number.
    None,
}

/// Parses digits, with optional single `_` between them.
pub(super) fn digits(text: &str) -> Digits {
    let grouped = text.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
    if !grouped {
        return Digits::None;
    }
    let add = |number: u64, byte: u8| number.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    match text.bytes().filter(|&byte| byte != b'_').try_fold(0, add) {
        Some(number) => Digits::Number(number),
        None => Digits::TooLarge,
    }
}

/// Formats a value for errors: quoted, escaped and shortened.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// Truncates a text to its first 64 characters.
#[must_use]
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// Returns the most similar of `known`, if one is similar enough to `name`.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.85;
    /// Longer names are not compared, because the cost is the product of the lengths.
    const LONGEST: usize = 128;
    if name.len() > LONGEST {
        return None;
    }
    let rated = known.into_iter().map(|other| (strsim::jaro_winkler(name, other), other));
    let best = rated.filter(|(likeness, _)| *likeness >= ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, other)| other)
}
