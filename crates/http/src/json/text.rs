//! Numbers and texts of JSON, written in place: each decision has a dozen of them.

/// Appends a text as it is.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text that needs no escapes, in quotes.
pub(super) fn quoted(out: &mut Vec<u8>, inner: &str) {
    out.push(b'"');
    text(out, inner);
    out.push(b'"');
}

/// Appends any text in quotes.
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        return quoted(out, text);
    }
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends the digits of a number.
pub(super) fn number(out: &mut Vec<u8>, value: u64) {
    padded(out, value, 1);
}

/// Appends a number with its sign.
pub(super) fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    number(out, value.unsigned_abs());
}

/// Appends the digits of a number, with zeros before them if they are fewer than `width`, which is at most 20.
pub(super) fn padded(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while value > 0 && start > 0 {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[start.min(digits.len().saturating_sub(width))..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_have_their_digits() {
        for value in [0, 1, 9, 10, 1_000_000_000, u64::MAX] {
            assert_eq!(written(|out| number(out, value)), value.to_string());
            assert_eq!(written(|out| padded(out, value, 6)), format!("{value:06}"));
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(written(|out| signed(out, value)), value.to_string());
        }
    }

    #[test]
    fn texts_have_the_escapes_of_another_library() {
        let all: String = (0..0x300).filter_map(char::from_u32).collect();
        for text in ["", "plain", "a\"b", "a\\b", "\u{1f}", "\u{7f}", "\u{e9}\u{1f600}", &all] {
            assert_eq!(written(|out| string(out, text)), serde_json::to_string(text).unwrap());
        }
    }
}
