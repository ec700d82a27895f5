//! Text that must not be shown, and where it comes from.

use std::fs::File;
use std::io::Read as _;

use super::Secret;
use super::values::{MAX_SECRET, Scalar, quote};

/// A password as it was written. Its errors never show it.
pub(super) fn password(scalar: Scalar<'_>) -> Result<Secret, String> {
    match scalar.text.len() {
        0 => Err("must not be empty".to_owned()),
        length if length > MAX_SECRET => Err(format!("is {length} bytes long: at most {MAX_SECRET}")),
        _ => Ok(Secret::new(scalar.text)),
    }
}

/// The password in a file, without the end of its line, which editors add.
pub(super) fn password_file(scalar: Scalar<'_>) -> Result<Secret, String> {
    let path = scalar.text;
    let mut text = String::new();
    // Room for the end of a line, and one byte more, which tells a file that is too large.
    let most = MAX_SECRET as u64 + 3;
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    read.map_err(|error| format!("{} cannot be read: {error}", quote(path)))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let text = line.strip_suffix('\r').unwrap_or(line);
    password(Scalar { text, quoted: true }).map_err(|reason| format!("what {} says {reason}", quote(path)))
}
