//! Selection of a directory's files, and their names in errors.

use std::path::{Path, PathBuf};

use crate::overlay::EnvoyOverlay;
use crate::settings::{EnvoyConfig, EnvoyLayout, MAX_ENVOY_RULES};

/// A directory of files, or a single file.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvoyFolder {
    path: PathBuf,
    layout: EnvoyLayout,
    /// Changes of the rules in the folder.
    pub(super) overlay: EnvoyOverlay,
    /// The most rules in the folder's files.
    pub(super) max_rules: usize,
}

impl EnvoyFolder {
    /// The directory `path`, which is laid out like this.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, layout: EnvoyLayout) -> Self {
        Self { path: path.into(), layout, overlay: EnvoyOverlay::default(), max_rules: MAX_ENVOY_RULES }
    }

    /// The same with the overlay and the bound of a configuration.
    #[must_use]
    pub fn with_config(self, config: &EnvoyConfig) -> Self {
        Self { overlay: config.rules.clone(), max_rules: config.max_rules, ..self }
    }

    /// The same with an overlay on its rules.
    #[must_use]
    pub fn with_overlay(self, overlay: EnvoyOverlay) -> Self {
        Self { overlay, ..self }
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of a file in errors.
    pub(super) fn name(&self, file: &Path) -> String {
        match (&self.layout, self.dotted(file)) {
            (EnvoyLayout::Paths, _) | (_, None) => file.display().to_string(),
            (_, Some(name)) => name,
        }
    }

    /// True if the file at `file` counts.
    pub(super) fn has_file(&self, file: &Path) -> bool {
        match &self.layout {
            EnvoyLayout::Paths | EnvoyLayout::Dotted => true,
            EnvoyLayout::Below(start) => {
                let below = |name: String| name.strip_prefix(start).is_some_and(|rest| rest.starts_with('.'));
                self.dotted(file).is_some_and(below)
            }
        }
    }

    /// True if files below the directory at `below` may count.
    pub(super) fn has_below(&self, below: &Path) -> bool {
        match &self.layout {
            EnvoyLayout::Paths | EnvoyLayout::Dotted => true,
            EnvoyLayout::Below(start) => self.dotted(below).is_none_or(|name| {
                let (start, name) = (format!("{start}."), format!("{name}."));
                start.starts_with(&name) || name.starts_with(&start)
            }),
        }
    }

    /// The path below the directory, with dots; `None` for the directory itself.
    fn dotted(&self, file: &Path) -> Option<String> {
        let below = file.strip_prefix(&self.path).ok()?;
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        (!parts.is_empty()).then(|| parts.join("."))
    }
}

impl From<PathBuf> for EnvoyFolder {
    /// All files count, under their paths.
    fn from(path: PathBuf) -> Self {
        Self::new(path, EnvoyLayout::Paths)
    }
}

impl From<&Path> for EnvoyFolder {
    fn from(path: &Path) -> Self {
        Self::new(path, EnvoyLayout::Paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_root_has_the_files_of_one_directory() {
        let folder = EnvoyFolder::new("/data/ratelimit", EnvoyLayout::Below("config".to_owned()));
        for (path, counts) in [
            ("/data/ratelimit/config/a.yaml", true),
            ("/data/ratelimit/config/below/a.yaml", true),
            ("/data/ratelimit/config.a.yaml", true),
            ("/data/ratelimit/config", false),
            ("/data/ratelimit/configs/a.yaml", false),
            ("/data/ratelimit/other/a.yaml", false),
        ] {
            assert_eq!(folder.has_file(Path::new(path)), counts, "{path}");
        }
        assert_eq!(folder.name(Path::new("/data/ratelimit/config/a.yaml")), "config.a.yaml");
        for (path, may) in [
            ("/data/ratelimit", true),
            ("/data/ratelimit/config", true),
            ("/data/ratelimit/config/below", true),
            ("/data/ratelimit/configs", false),
            ("/data/ratelimit/other", false),
        ] {
            assert_eq!(folder.has_below(Path::new(path)), may, "{path}");
        }
        let nested = EnvoyFolder::new("/data", EnvoyLayout::Below("a.b".to_owned()));
        assert!(nested.has_below(Path::new("/data/a")) && nested.has_file(Path::new("/data/a/b/c")));
    }

    #[test]
    fn names_are_paths_or_have_dots() {
        let file = Path::new("/limits/a/b.yaml");
        let name = |layout| EnvoyFolder::new("/limits", layout).name(file);
        assert_eq!([name(EnvoyLayout::Paths), name(EnvoyLayout::Dotted)], ["/limits/a/b.yaml", "a.b.yaml"]);
        assert_eq!(EnvoyFolder::new(file, EnvoyLayout::Dotted).name(file), "/limits/a/b.yaml");
    }
}
