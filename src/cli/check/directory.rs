//! Distinguishes configurations of Weir in a directory from Envoy's files.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use weir_config::MAX_FILE;

/// Top-level keys that only a configuration of Weir has. Envoy's files have `domain` and `descriptors`.
const KEYS: [&str; 8] =
    ["server", "store", "strategies", "resources", "overrides", "access", "envoy", "messages"];

/// Returns the YAML files in `directory`, sorted by name: configurations of Weir, and others. Both lists are empty
/// if it is not a directory.
pub(super) fn configurations(directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_yaml(path)).collect();
    files.sort_unstable();
    files.into_iter().partition(|path| is_native(path))
}

fn is_yaml(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && path.extension().is_some_and(|end| end == "yaml" || end == "yml") && path.is_file()
}

/// True for a configuration of Weir. It searches for keys at the beginning of lines, so it also recognizes a file
/// with a syntax error.
fn is_native(path: &Path) -> bool {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE as u64).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let mut keys =
        text.lines().filter_map(|line| line.split_once(':')).map(|(key, _)| key.trim_matches(['"', '\'']));
    read.is_ok() && keys.any(|key| KEYS.contains(&key))
}
