//! The files of a configuration: what is named on the command line, and what directories hold.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::unreadable::unreadable;

/// Maximum size of a configuration, of all its files together, in bytes.
pub const MAX_FILE: usize = 16 << 20;

/// Maximum number of files of a configuration.
pub const MAX_CONFIG_FILES: usize = 1000;

/// Returns the configurations in a directory, sorted by name: `*.yaml`, `*.yml` and `*.json`. Names that begin with a
/// dot are left out, because a ConfigMap keeps its versions under such names; links are followed.
///
/// It stops at `most` files.
pub fn config_files(directory: &Path, most: usize) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path()));
    let paths = paths.filter(|path| path.as_ref().is_ok_and(|path| is_config(path)) || path.is_err());
    let mut files = paths.take(most).collect::<io::Result<Vec<_>>>()?;
    files.sort_unstable();
    Ok(files)
}

fn is_config(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let ends = ["yaml", "yml", "json"];
    !is_hidden && path.extension().is_some_and(|end| ends.iter().any(|it| end == *it)) && path.is_file()
}

/// A file, or a directory without files.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// The reason that the file cannot be read.
    pub(super) mistake: Option<String>,
}

/// Returns the files of a configuration, in the order of `paths`.
pub(super) fn files_of(paths: &[PathBuf]) -> Vec<ConfigFile> {
    let mut files = Vec::new();
    for path in paths {
        let mistaken = |reason: String| ConfigFile { path: path.clone(), mistake: Some(reason) };
        if !path.is_dir() {
            files.push(ConfigFile { path: path.clone(), mistake: None });
            continue;
        }
        // One more than allowed detects a directory with too many.
        match config_files(path, MAX_CONFIG_FILES + 1) {
            Err(error) => files.push(mistaken(format!("cannot be read: {}", unreadable(path, &error)))),
            Ok(found) if found.is_empty() => {
                let reason = "there is no configuration in this directory: no *.yaml, *.yml or *.json";
                files.push(mistaken(reason.to_owned()));
            }
            Ok(found) if found.len() > MAX_CONFIG_FILES => {
                files.push(mistaken(format!("has more than {MAX_CONFIG_FILES} files")));
            }
            Ok(found) => files.extend(found.into_iter().map(|path| ConfigFile { path, mistake: None })),
        }
    }
    files
}
