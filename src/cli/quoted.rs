//! Texts in commands for a shell.

/// Quotes the text as one shell word.
pub(super) fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/=:@,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_what_was_meant() {
        for (text, word) in
            [("path=/login", "path=/login"), ("", "''"), ("a b", "'a b'"), ("it's $HOME", "'it'\\''s $HOME'")]
        {
            assert_eq!(quoted(text), word);
        }
    }
}
