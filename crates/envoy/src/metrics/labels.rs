//! Labels of bounded length: names of control planes may have 4 KiB.

use std::borrow::Cow;
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

/// The longest label, in bytes.
const MAX_LABEL: usize = 256;

/// Bytes of the digest at the end of a label that was cut; it is written with two digits each.
const DIGEST: usize = 8;

/// `text`, or its beginning and a digest of all of it.
pub(super) fn label(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_LABEL {
        return Cow::Borrowed(text);
    }
    let most = MAX_LABEL - "~".len() - 2 * DIGEST;
    let ends = text.char_indices().map(|(end, _)| end);
    let kept = ends.take_while(|end| *end <= most).last().unwrap_or_default();
    let mut cut = text.get(..kept).unwrap_or_default().to_owned();
    cut.push('~');
    Cow::Owned(cut + &short_digest(text))
}

/// The first 16 digits of the SHA-256 of a text, in hex.
#[must_use]
pub fn short_digest(text: &str) -> String {
    let mut digits = String::new();
    for byte in digest(&SHA256, text.as_bytes()).as_ref().iter().take(DIGEST) {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_beyond_the_bound_are_cut_and_differ() {
        let exact = "x".repeat(256);
        assert_eq!(label(&exact), exact);
        let [one, other] = ["y", "z"].map(|end| format!("{exact}{end}"));
        assert_eq!(label(&one).len(), 256);
        assert_ne!(label(&one), label(&other));
        assert!(label(&one).starts_with(&format!("{}~", "x".repeat(239))));
        // 239 is in the middle of a letter.
        let wide = "é".repeat(200);
        assert_eq!(label(&wide).len(), 255);
    }
}
