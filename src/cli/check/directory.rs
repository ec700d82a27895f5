//! Sorts the files of a directory by their format: Weir's, Envoy's, or neither.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use weir_config::{MAX_FILE, config_files};

use crate::features::schema;

/// Top-level keys of Envoy's files.
const ENVOYS: [&str; 2] = ["domain", "descriptors"];

/// The YAML and JSON files of a directory, each list sorted by name.
#[derive(Debug, Default)]
pub(super) struct DirectoryFiles {
    /// Configurations of Weir.
    pub natives: Vec<PathBuf>,
    /// Files in the format of envoyproxy/ratelimit.
    pub envoys: Vec<PathBuf>,
    /// Files of neither format, with the keys that they have.
    pub unknown: Vec<(PathBuf, Vec<String>)>,
}

impl DirectoryFiles {
    /// Reads the files in `directory`. All lists are empty if it is no directory.
    pub(super) fn read(directory: &Path) -> Self {
        let files = config_files(directory, usize::MAX).unwrap_or_default();
        let natives = native_keys();
        let mut sorted = Self::default();
        for path in files {
            let keys = top_level_keys(&path);
            if keys.iter().any(|key| natives.contains(key)) {
                sorted.natives.push(path);
            } else if keys.iter().any(|key| ENVOYS.contains(&&**key)) {
                sorted.envoys.push(path);
            } else {
                sorted.unknown.push((path, keys));
            }
        }
        sorted
    }

    /// Returns an error for each file of neither format.
    pub(super) fn mistakes(&self) -> impl Iterator<Item = (&Path, String)> {
        self.unknown.iter().map(|(path, keys)| (&**path, neither(path, keys)))
    }
}

fn native_keys() -> Vec<String> {
    let schema = schema();
    let keys = schema.get("properties").and_then(|it| it.as_object());
    keys.into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

/// Returns the top-level keys. Those of YAML are what begins a line, so a file with a syntax error has some too.
fn top_level_keys(path: &Path) -> Vec<String> {
    let mut text = Vec::new();
    // A file that cannot be read has no keys; the reader of its format would say why.
    let _ = File::open(path).and_then(|file| file.take(MAX_FILE as u64).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    if let Ok(serde_json::Value::Object(keys)) = serde_json::from_str(&text) {
        return keys.into_iter().map(|(key, _)| key).collect();
    }
    let starts_key =
        |line: &&str| line.starts_with(|first: char| !first.is_whitespace() && !"#-{[".contains(first));
    let keys = text.lines().filter(starts_key).filter_map(|line| line.split_once(':'));
    keys.map(|(key, _)| key.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

fn neither(path: &Path, keys: &[String]) -> String {
    let path = path.display();
    let Some(first) = keys.first() else {
        return format!(
            "{path}: has no top-level keys, so it is neither a configuration of Weir nor a file of Envoy's"
        );
    };
    format!(
        "{path}: is neither a configuration of Weir nor a file of Envoy's: `{first}` is no key of either; they have {}, \
         and {}",
        native_keys().join(", "),
        ENVOYS.join(", "),
    )
}
