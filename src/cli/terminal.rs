//! Output. Names of consumers and resources come from callers, so nothing of them may control the terminal of the person who
//! reads them, or reorder its text.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Writes to stdout. A reader that has gone (`weir … | head`) is no mistake of ours.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(clean(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a line on stderr. Errors are ignored: a closed stderr has no reader.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", clean(line));
}

/// The text with escapes, as JSON has them, for all characters that a terminal obeys but for line breaks and tabs. So JSON
/// stays JSON of the same meaning.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| matches!(letter, '\n' | '\t') || !controls(letter);
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_plain(letter) {
            out.push(letter);
        } else {
            // Each of them is one unit of UTF-16; writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        }
    }
    out.into()
}

/// The same for a cell of a table, which is one line.
pub(super) fn clean_cell(text: &str) -> String {
    clean(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Formats a table with columns two blanks apart; from column `texts` on they are numbers, right-aligned.
pub(super) fn text_table<const N: usize>(rows: &[[String; N]], texts: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut table = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = if column < texts {
                write!(line, "  {cell:<width$}")
            } else {
                write!(line, "  {cell:>width$}")
            };
        }
        let _ = writeln!(table, "{}", line.trim_end());
    }
    table
}

/// True for control characters, marks and overrides of the writing direction, and separators of lines.
const fn controls(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        let hostile = "bob\u{202e}nimda\u{1b}[2J\u{9b}1m\r\u{7f}\u{2066}x";
        assert_eq!(clean(hostile), r"bob\u202enimda\u001b[2J\u009b1m\u000d\u007f\u2066x");
        let plain = "a line\twith Größe, 東京, עברית and 👩‍🚀\nand another\n";
        assert!(matches!(clean(plain), Cow::Borrowed(same) if same == plain));
        assert_eq!(clean_cell("a\nb\tc\u{202e}"), r"a\nb\tc\u202e");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "consumer": "bob\u{202e}\u{1b}\n\u{9b}\u{2028}" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        assert!(!clean(&text).contains('\u{202e}'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&clean(&text)).unwrap(), value);
    }
}
