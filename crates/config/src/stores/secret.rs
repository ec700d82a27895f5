//! A password: in plain text, in a file that is read on each use, or printed by a command.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::unreadable::unreadable;

/// Maximum length of a password, in bytes.
pub const MAX_SECRET: usize = 1024;

/// A password. Its `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Source);

#[derive(Clone, PartialEq, Eq)]
enum Source {
    Text(String),
    File(PathBuf),
    /// The password, or user, colon and password.
    LoginFile(PathBuf),
    Command(Arc<[String]>),
}

/// An error of a password file. The messages never show its content.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("{path:?} cannot be read: {}", unreadable(path, error))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The file is empty, or has just an empty line.
    #[error("what {path:?} says must not be empty")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file names a user alone.
    #[error("what {path:?} says has no password after the colon")]
    NoPassword {
        /// The file.
        path: PathBuf,
    },
    /// A command prints it, and this reader runs none.
    #[error("a command prints it")]
    Printed,
    /// The password is too long.
    #[error("what {path:?} says is {length} bytes long: at most {MAX_SECRET}")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The length of the file, as far as it was read.
        length: usize,
    },
}

impl Secret {
    /// Creates a secret from text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Source::Text(text.into()))
    }

    /// Creates a secret that is read from this file on each use.
    #[must_use]
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// Creates a secret that is read from this file on each use: a password, or user, colon and password.
    #[must_use]
    pub fn in_login_file(path: impl Into<PathBuf>) -> Self {
        Self(Source::LoginFile(path.into()))
    }

    /// Creates a secret that this command prints: a program and its arguments.
    #[must_use]
    pub fn printed_by(words: impl Into<Arc<[String]>>) -> Self {
        Self(Source::Command(words.into()))
    }

    /// Returns the command that prints it, if one does.
    #[must_use]
    pub fn command(&self) -> Option<&Arc<[String]>> {
        match &self.0 {
            Source::Command(words) => Some(words),
            Source::Text(_) | Source::File(_) | Source::LoginFile(_) => None,
        }
    }

    /// Returns the current secret. Reads the file, if it is in one. Runs no command.
    pub fn read(&self) -> Result<Cow<'_, str>, SecretError> {
        self.read_login().map(|(_, password)| password)
    }

    /// Returns the current secret, and the user if the file names one.
    pub fn read_login(&self) -> Result<(Option<String>, Cow<'_, str>), SecretError> {
        match &self.0 {
            Source::Text(text) => Ok((None, Cow::Borrowed(text))),
            Source::File(path) => Ok((None, Cow::Owned(read(path)?))),
            Source::LoginFile(path) => {
                let text = read(path)?;
                let (user, password) = match text.split_once(':') {
                    Some((user, password)) => (Some(user).filter(|user| !user.is_empty()), password),
                    None => (None, text.as_str()),
                };
                if password.is_empty() {
                    return Err(SecretError::NoPassword { path: path.clone() });
                }
                Ok((user.map(str::to_owned), Cow::Owned(password.to_owned())))
            }
            Source::Command(_) => Err(SecretError::Printed),
        }
    }
}

/// Reads a password file, without the final line break, which editors add.
fn read(path: &Path) -> Result<String, SecretError> {
    let mut text = String::new();
    // Two more bytes for the line break, and a third one to detect a file that is too large.
    let most = MAX_SECRET as u64 + 3;
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    let path = || path.to_owned();
    read.map_err(|error| SecretError::Unreadable { path: path(), error })?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.len() {
        0 => Err(SecretError::Empty { path: path() }),
        length if length > MAX_SECRET => Err(SecretError::TooLong { path: path(), length }),
        length => {
            text.truncate(length);
            Ok(text)
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Text(_) => f.write_str("Secret(…)"),
            Source::File(path) | Source::LoginFile(path) => write!(f, "Secret(in {path:?})"),
            // An argument may be a secret, too.
            Source::Command(words) => {
                write!(f, "Secret(printed by {:?})", words.first().map_or("", String::as_str))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(text: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        file
    }

    #[test]
    fn a_file_is_read_each_time() {
        let file = file(b"one\n");
        let secret = Secret::in_file(file.path());
        assert_eq!(secret.read().unwrap(), "one");
        std::fs::write(file.path(), "two\r\n").unwrap();
        assert_eq!(secret.read().unwrap(), "two");
        std::fs::remove_file(file.path()).unwrap();
        let error = secret.read().unwrap_err();
        assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
    }

    #[test]
    fn what_a_file_holds_is_bounded() {
        let longest = "x".repeat(MAX_SECRET);
        for end in ["", "\n", "\r\n"] {
            let file = file(format!("{longest}{end}").as_bytes());
            assert_eq!(Secret::in_file(file.path()).read().unwrap(), longest, "{end:?}");
        }
        for (text, expected) in [
            (format!("{longest}x"), "is 1025 bytes long: at most 1024"),
            ("x".repeat(1 << 20), "is 1027 bytes long: at most 1024"),
            ("\n".to_owned(), "must not be empty"),
        ] {
            let file = file(text.as_bytes());
            let error = Secret::in_file(file.path()).read().unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn a_file_may_name_the_user() {
        for (text, user, password) in [
            ("pass\n", None, "pass"),
            ("weir:pass\n", Some("weir"), "pass"),
            (":pass", None, "pass"),
            ("weir:pa:ss", Some("weir"), "pa:ss"),
        ] {
            let file = file(text.as_bytes());
            let secret = Secret::in_login_file(file.path());
            assert_eq!(secret.read_login().unwrap(), (user.map(str::to_owned), password.into()), "{text:?}");
            let whole = text.trim_end();
            assert_eq!(Secret::in_file(file.path()).read_login().unwrap(), (None, whole.into()));
        }
        let file = file(b"weir:\n");
        let error = Secret::in_login_file(file.path()).read_login().unwrap_err().to_string();
        assert!(error.ends_with("has no password after the colon") && !error.contains("weir:"), "{error}");
    }

    #[test]
    fn nothing_prints_what_it_says() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(…)");
        let printed = Secret::printed_by(["/bin/echo".to_owned(), "hunter2".to_owned()]);
        assert_eq!(format!("{printed:?}"), "Secret(printed by \"/bin/echo\")");
        assert!(printed.read().is_err());
    }
}
