//! JSON on one line of a log that people read in a terminal: what would reorder or break the line is escaped.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Writes strings with escapes for all characters that a terminal obeys; their meaning is the same.
struct LineFormatter;

impl Formatter for LineFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() {
            return writer.write_all(fragment.as_bytes());
        }
        let mut plain = 0;
        for (at, letter) in fragment.char_indices().filter(|(_, letter)| obeyed(*letter)) {
            writer.write_all(fragment.get(plain..at).unwrap_or_default().as_bytes())?;
            // Each of them is one unit of UTF-16.
            write!(writer, "\\u{:04x}", u32::from(letter))?;
            plain = at + letter.len_utf8();
        }
        writer.write_all(fragment.get(plain..).unwrap_or_default().as_bytes())
    }
}

/// True for control characters beyond those that JSON escapes, marks and overrides of the writing direction, and separators
/// of lines.
const fn obeyed(letter: char) -> bool {
    matches!(
        letter,
        '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

pub(crate) fn push(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing to a Vec cannot fail.
    let _ = value.serialize(&mut Serializer::with_formatter(out, LineFormatter));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_means_the_same() {
        let text = "bob\u{202e}nimda\u{2028}\u{1b}\u{9b}x Größe 東京";
        let mut out = Vec::new();
        push(&mut out, text);
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line, r#""bob\u202enimda\u2028\u001b\u009bx Größe 東京""#);
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
