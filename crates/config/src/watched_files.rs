//! Snapshots of files, which detect changes; and when a change is complete.
//!
//! Files are polled instead of using file system events: a ConfigMap changes by a swap of symbolic links, editors replace
//! files, and network file systems send no events.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file with its metadata, which changes with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamp {
    /// The file.
    pub path: PathBuf,
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A snapshot of single files, of which some may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilesSnapshot(Vec<Result<FileStamp, PathBuf>>);

/// Detects that files have changed and are at rest: a change counts after two equal snapshots in a row, so that no
/// half-written change is read.
#[derive(Debug)]
pub struct Settling<S> {
    /// The snapshot that was read last, whether it was loaded or refused.
    read: S,
    /// The last snapshot.
    seen: S,
}

impl FileStamp {
    /// Creates the stamp of a file with this metadata.
    #[must_use]
    pub fn new(path: PathBuf, data: &Metadata) -> Self {
        Self {
            path,
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

impl FilesSnapshot {
    /// Looks at the files. Symbolic links are followed.
    #[must_use]
    pub fn new(paths: &[PathBuf]) -> Self {
        let mut snapshot = Self::default();
        paths.iter().for_each(|path| snapshot.add(path));
        snapshot
    }

    /// Looks at one more file.
    pub(super) fn add(&mut self, path: &Path) {
        let data = fs::metadata(path).map_err(|_| path.to_owned());
        self.0.push(data.map(|data| FileStamp::new(path.to_owned(), &data)));
    }

    /// Adds the files of another snapshot.
    pub(super) fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl<S: PartialEq + Clone> Settling<S> {
    /// Begins with the snapshot of files that are about to be read: a change meanwhile is detected later.
    #[must_use]
    pub fn new(read: S) -> Self {
        Self { seen: read.clone(), read }
    }

    /// Takes the next snapshot; true if the files have to be read.
    pub fn is_settled(&mut self, now: S) -> bool {
        let is_at_rest = now == self.seen;
        self.seen = now;
        is_at_rest && self.seen != self.read
    }

    /// Returns the last snapshot.
    pub fn seen(&self) -> &S {
        &self.seen
    }

    /// Records that the last snapshot was read.
    pub fn was_read(&mut self) {
        self.read = self.seen.clone();
    }

    /// Records that the files were read as they are in this snapshot.
    pub fn was_read_as(&mut self, snapshot: S) {
        self.seen = snapshot;
        self.was_read();
    }
}

#[cfg(test)]
mod tests {
    use super::Settling;

    #[test]
    fn a_change_counts_once_it_is_at_rest() {
        let mut files = Settling::new(1);
        let looks = [1, 2, 3, 3, 3, 1, 1].map(|now| {
            let is_settled = files.is_settled(now);
            if is_settled {
                files.was_read();
            }
            is_settled
        });
        assert_eq!(looks, [false, false, false, true, false, false, true]);
    }
}
