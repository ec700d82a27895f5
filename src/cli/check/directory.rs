//! Which files of a directory are configurations of Weir. In a directory of Envoy's files there is none.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use weir_config::MAX_FILE;

/// Keys that only a configuration of Weir has. Envoy's files have `domain` and `descriptors`.
const KEYS: [&str; 8] =
    ["server", "store", "strategies", "resources", "overrides", "access", "envoy", "messages"];

/// The YAML files in `directory`, in the order of their names: configurations of Weir, and others. Both are
/// empty, if it is no directory.
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

/// It looks at the keys at the beginning of lines, so it also knows a file whose syntax has a mistake.
fn is_native(path: &Path) -> bool {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE as u64).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let mut keys =
        text.lines().filter_map(|line| line.split_once(':')).map(|(key, _)| key.trim_matches(['"', '\'']));
    read.is_ok() && keys.any(|key| KEYS.contains(&key))
}
