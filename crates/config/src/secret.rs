//! Secrets, given as text or in a file.

use std::fs;
use std::io;
use std::path::Path;

use super::Secret;
use super::values::{Scalar, quote, secret_text};

/// Reads a password in plain text. Errors never show it.
pub(super) fn password(scalar: Scalar<'_>) -> Result<Secret, String> {
    secret_text(scalar).map(Secret::new)
}

/// Reads a password file. It is validated now, so that a mistake is reported at startup, and read again whenever a
/// connection is opened.
pub(super) fn password_file(path: &Path) -> Result<Secret, String> {
    validated(Secret::in_file(path))
}

/// The same for a file that may begin with the user and a colon.
pub(super) fn login_file(path: &Path) -> Result<Secret, String> {
    validated(Secret::in_login_file(path))
}

fn validated(secret: Secret) -> Result<Secret, String> {
    secret.read_login().map_err(|error| error.to_string())?;
    Ok(secret)
}

/// Returns the error if the file does not exist: it may exist on the target machine.
pub(super) fn missing(path: &Path) -> Option<String> {
    let error = fs::metadata(path).err().filter(|error| error.kind() == io::ErrorKind::NotFound)?;
    Some(format!("{} cannot be read: {error}", quote(&path.to_string_lossy())))
}
