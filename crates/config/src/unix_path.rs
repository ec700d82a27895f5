//! Names of Unix sockets in gRPC's syntax: `unix:PATH`, or `unix:///ABSOLUTE/PATH`.

use std::path::PathBuf;

use super::values::shortened;

/// Maximum length of the path of a Unix socket in bytes: the system has 108, including the final NUL.
pub const MAX_SOCKET_PATH: usize = 107;

/// An error in a name that begins with `unix:`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnixPathError {
    /// `unix://` is followed by something else than an absolute path.
    #[error("{0:?} names a host; write unix:PATH or unix:///ABSOLUTE/PATH")]
    Host(String),
    /// The path is empty, or ends in a slash.
    #[error("{0:?} has no file name; write unix:PATH, such as unix:/run/weir/weir.sock")]
    NoFileName(String),
    /// The path contains a NUL.
    #[error("{0:?} has a NUL in it")]
    Nul(String),
    /// The path is longer than the system allows.
    #[error("{name:?} has a path of {length} bytes: the path of a Unix socket has at most {MAX_SOCKET_PATH}")]
    TooLong {
        /// The name, shortened.
        name: String,
        /// The length of its path, in bytes.
        length: usize,
    },
}

/// Returns the path in the name of a Unix socket; `None` for any other name.
#[must_use]
pub fn unix_path(name: &str) -> Option<Result<PathBuf, UnixPathError>> {
    let rest = name.strip_prefix("unix:")?;
    Some(checked(name, rest))
}

fn checked(name: &str, rest: &str) -> Result<PathBuf, UnixPathError> {
    let shown = || shortened(name);
    let path = match rest.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => return Err(UnixPathError::Host(shown())),
        None => rest,
    };
    if path.is_empty() || path.ends_with('/') {
        return Err(UnixPathError::NoFileName(shown()));
    }
    if path.contains('\0') {
        return Err(UnixPathError::Nul(shown()));
    }
    if path.len() > MAX_SOCKET_PATH {
        return Err(UnixPathError::TooLong { name: shown(), length: path.len() });
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_paths() {
        for (name, path) in [
            ("unix:weir.sock", "weir.sock"),
            ("unix:/run/weir.sock", "/run/weir.sock"),
            ("unix:///run/weir.sock", "/run/weir.sock"),
        ] {
            assert_eq!(unix_path(name), Some(Ok(PathBuf::from(path))), "{name}");
        }
        assert_eq!(unix_path("127.0.0.1:8081"), None);
        let longest = "x".repeat(MAX_SOCKET_PATH);
        assert!(unix_path(&format!("unix:{longest}")).is_some_and(|path| path.is_ok()));
        let error = |name: &str| unix_path(name).unwrap().unwrap_err();
        for name in ["unix:", "unix:/", "unix:/run/", "unix:///"] {
            assert_eq!(error(name), UnixPathError::NoFileName(name.to_owned()));
        }
        assert_eq!(error("unix://host/path"), UnixPathError::Host("unix://host/path".to_owned()));
        assert_eq!(error("unix:a\0b"), UnixPathError::Nul("unix:a\0b".to_owned()));
        let too_long = error(&format!("unix:{longest}y")).to_string();
        assert!(
            too_long.ends_with("a path of 108 bytes: the path of a Unix socket has at most 107"),
            "{too_long}"
        );
    }
}
