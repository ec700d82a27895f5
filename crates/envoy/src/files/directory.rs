//! Snapshots of a directory, which detect changes of its files.
//!
//! Names that start with a dot are skipped: editors leave such files, and a ConfigMap keeps its content in
//! `..data`. Symbolic links are followed, so a ConfigMap's files are found through their links.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::folder::EnvoyFolder;
use weir_config::foreign::FileStamp;
use weir_config::unreadable;

/// Maximum number of files in a directory.
pub const MAX_ENVOY_FILES: usize = 1000;

/// Maximum size of a file, in bytes.
pub const MAX_ENVOY_FILE: usize = 4 << 20;

/// Maximum nesting depth of directories, because links may form a cycle.
const MAX_DEPTH: usize = 8;

/// A snapshot of a directory's files, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DirectoryListing {
    pub(super) files: Vec<FileStamp>,
    /// Paths that cannot be read, and the reasons.
    pub(super) refused: Vec<(PathBuf, String)>,
}

impl DirectoryListing {
    /// Lists the files of `folder` that count, recursively; or `folder` itself, if it is a file.
    pub(super) fn list(folder: &EnvoyFolder) -> Self {
        let (mut listing, path) = (Self::default(), folder.path());
        match fs::metadata(path) {
            Ok(data) if data.is_file() => listing.files.push(FileStamp::new(path.to_owned(), &data)),
            _ => listing.add_all(folder, path, 0),
        }
        if listing.files.len() > MAX_ENVOY_FILES {
            let reason = format!("has more than {MAX_ENVOY_FILES} files");
            listing.refused.push((path.to_owned(), reason));
        }
        listing
    }

    /// The reason why the directory itself cannot be listed, if it cannot.
    pub(super) fn failure(&self, folder: &EnvoyFolder) -> Option<&str> {
        self.refused.iter().find(|(path, _)| path == folder.path()).map(|(_, reason)| reason.as_str())
    }

    fn add_all(&mut self, root: &EnvoyFolder, folder: &Path, depth: usize) {
        let names = fs::read_dir(folder).and_then(|entries| {
            let names = entries.map(|entry| Ok(entry?.file_name()));
            names.take(MAX_ENVOY_FILES * 4).collect::<io::Result<Vec<_>>>()
        });
        let mut names = match names {
            Ok(names) => names,
            Err(error) => return self.refuse(folder, &error),
        };
        names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
        names.sort_unstable();
        for name in names {
            if self.files.len() > MAX_ENVOY_FILES {
                return;
            }
            let path = folder.join(name);
            if !root.has_file(&path) && !root.has_below(&path) {
                continue;
            }
            match fs::metadata(&path) {
                Ok(data) if data.is_file() && !root.has_file(&path) => {}
                Ok(data) if data.is_file() => self.files.push(FileStamp::new(path, &data)),
                Ok(data) if data.is_dir() && depth < MAX_DEPTH => self.add_all(root, &path, depth + 1),
                Ok(data) if data.is_dir() => {
                    let reason = format!("directories nest at most {MAX_DEPTH} deep");
                    self.refused.push((path, reason));
                }
                Ok(_) => self.refused.push((path, "is no regular file".to_owned())),
                Err(error) => self.refuse(&path, &error),
            }
        }
    }

    fn refuse(&mut self, path: &Path, error: &io::Error) {
        self.refused.push((path.to_owned(), format!("cannot be read: {}", unreadable(path, error))));
    }
}

/// Reads the text of a file.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    // Reading one byte more than allowed detects a file that is too large, even an endless one.
    let read = File::open(path).and_then(|file| file.take(MAX_ENVOY_FILE as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot be read: {}", unreadable(path, &error)))?;
    String::from_utf8(bytes).map_err(|_| "error loading config file: yaml: it is not UTF-8".to_owned())
}
