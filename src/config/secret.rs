//! Text that must not be shown, and where it comes from.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

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
pub(super) fn password_file(path: &Path) -> Result<Secret, String> {
    let mut text = String::new();
    // Room for the end of a line, and one byte more, which shows that a file is too large.
    let most = MAX_SECRET as u64 + 3;
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    let shown = quote(&path.to_string_lossy());
    read.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let text = line.strip_suffix('\r').unwrap_or(line);
    password(Scalar { text, quoted: true }).map_err(|reason| format!("what {shown} says {reason}"))
}

/// Why the file cannot be read, if it is because there is none: it may be on another machine.
pub(super) fn missing(path: &Path) -> Option<String> {
    let error = fs::metadata(path).err().filter(|error| error.kind() == io::ErrorKind::NotFound)?;
    Some(format!("{} cannot be read: {error}", quote(&path.to_string_lossy())))
}
