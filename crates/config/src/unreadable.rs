//! Reasons for which a file cannot be read. A lack of rights is told with the owner, the mode and our own user.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns the text of an error of reading the file or directory at `path`, without the path.
#[must_use]
pub fn unreadable(path: &Path, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error.to_string();
    }
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    match blocking(path) {
        Some((place, data)) => {
            let (owner, group, mode) = (data.uid(), data.gid(), data.mode() & 0o7777);
            let us = format!("this process is {uid}:{gid}");
            format!("{error}: {place:?} belongs to {owner}:{group} with mode {mode:04o}, and {us}")
        }
        None => format!("{error}: this process is {uid}:{gid}"),
    }
}

/// The file, or if it cannot even be looked at, the nearest directory above it that can: that one is in the way.
fn blocking(path: &Path) -> Option<(PathBuf, Metadata)> {
    path.ancestors().find_map(|place| {
        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        Some((place.to_owned(), place.metadata().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_rights_says_more() {
        let missing = std::fs::read("/no/such").unwrap_err();
        assert_eq!(unreadable(Path::new("/no/such"), &missing), "No such file or directory (os error 2)");
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let said = unreadable(Path::new("/etc/passwd"), &denied);
        assert!(
            said.contains(": \"/etc/passwd\" belongs to 0:0 with mode 0644, and this process is "),
            "{said}"
        );
        let said = unreadable(Path::new("/etc/no/such"), &denied);
        assert!(said.contains(": \"/etc\" belongs to 0:0 with mode 0755, and"), "{said}");
    }
}
