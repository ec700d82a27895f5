//! Reads a set of files into domains, or reports all mistakes in them.

use std::collections::HashMap;
use std::path::Path;

use weir_core::envoy::{Descriptor, Domains};

use super::descriptor::{DescriptorReader, SiblingKeys};
use super::directory::{self, DirectoryListing, MAX_ENVOY_FILE};
use super::errors::{EnvoyError, EnvoyErrors};
use super::keys;
use super::node::Map;
use crate::errors::{MistakeReport, Position};
use crate::tree::{YamlNode, compose_foreign};
use crate::values::shortened;

/// The content of a set of files.
#[derive(Debug, Clone, Default)]
pub struct EnvoyFiles {
    /// Each domain once, with its descriptors, in the order of the files.
    pub domains: Vec<(String, Vec<Descriptor>)>,
    /// Warnings about valid keys without effect, a line each.
    pub warnings: Vec<String>,
    /// Number of files.
    pub count: usize,
}

impl EnvoyFiles {
    /// Reads every file of `folder`, sorted by name; or `folder` itself, if it is a file. With `merge_domains`, files
    /// may share a domain; otherwise that is a mistake.
    pub fn load(folder: &Path, merge_domains: bool) -> Result<Self, EnvoyErrors> {
        Self::read(folder, &DirectoryListing::of(folder), merge_domains)
    }

    /// Parses texts, each with its name for errors.
    pub fn parse<'t>(
        texts: impl IntoIterator<Item = (&'t str, &'t str)>,
        merge_domains: bool,
    ) -> Result<Self, EnvoyErrors> {
        let mut set = Set::new(merge_domains);
        for (file, text) in texts {
            set.add(file, text);
        }
        set.finish()
    }

    /// Compiles the domains for matching.
    #[must_use]
    pub fn compile(self) -> Domains {
        Domains::new(self.domains)
    }

    pub(super) fn read(
        folder: &Path,
        listing: &DirectoryListing,
        merge_domains: bool,
    ) -> Result<Self, EnvoyErrors> {
        let mut set = Set::new(merge_domains);
        if listing.files.is_empty() {
            let reason = "there are no files in it, so nothing is limited";
            set.read.warnings.push(format!("{}: {reason}", folder.display()));
        }
        for (path, reason) in &listing.refused {
            set.errors.add(error(&path.display().to_string(), reason));
        }
        for found in &listing.files {
            let file = found.path.display().to_string();
            match directory::read(&found.path) {
                Ok(text) => set.add(&file, &text),
                Err(reason) => set.errors.add(error(&file, &reason)),
            }
        }
        set.finish()
    }
}

/// The state of reading a set of files.
struct Set {
    merge: bool,
    read: EnvoyFiles,
    errors: EnvoyErrors,
    /// For each domain its index, and the siblings on its first level.
    known: HashMap<String, (usize, SiblingKeys)>,
    descriptors: usize,
}

impl Set {
    fn new(merge: bool) -> Self {
        Self {
            merge,
            read: EnvoyFiles::default(),
            errors: EnvoyErrors::default(),
            known: HashMap::new(),
            descriptors: 0,
        }
    }

    fn finish(self) -> Result<EnvoyFiles, EnvoyErrors> {
        if self.errors.is_empty() { Ok(self.read) } else { Err(self.errors) }
    }

    fn add(&mut self, file: &str, text: &str) {
        self.read.count += 1;
        if text.len() > MAX_ENVOY_FILE {
            let reason =
                format!("error loading config file: it is larger than {MAX_ENVOY_FILE} bytes (4 MiB)");
            return self.errors.add(error(file, &reason));
        }
        let mut syntax = MistakeReport::default();
        let tree = compose_foreign(text, &mut syntax);
        // Content after a syntax error is unknown, so nothing else is reported.
        if let Err(errors) = syntax.finish(file, ()) {
            for EnvoyError { reason, at, .. } in EnvoyErrors::from(&errors).errors() {
                let reason = format!("error loading config file: yaml: {reason}");
                self.errors.add(EnvoyError { file: file.to_owned(), reason, at: *at });
            }
            return;
        }
        let mut report = MistakeReport::default();
        match &tree {
            Some(tree) => self.domain(file, tree, &mut report),
            None => report.file("config file cannot have empty domain"),
        }
        if let Err(errors) = report.finish(file, ()) {
            self.errors.extend(&errors);
        }
    }

    fn domain(&mut self, file: &str, tree: &YamlNode, report: &mut MistakeReport) {
        for (Position { line, column }, reason) in keys::check(tree, report) {
            self.read.warnings.push(format!("{file}: {reason} (line {line}, column {column})"));
        }
        let Some(root) = Map::of(tree, "map[interface {}]interface {}", report) else { return };
        let reported = report.len();
        let name = root.text("domain", report).unwrap_or_default();
        let at = root.get("domain").map_or(tree.at, |domain| domain.at);
        if name.is_empty() && report.len() == reported {
            report.at(at, "", "config file cannot have empty domain");
        }
        let next = self.read.domains.len();
        let is_new = !self.known.contains_key(name);
        if !is_new && !self.merge && !name.is_empty() {
            report.at(
                at,
                "",
                format!("duplicate domain '{}' in config file", shortened(name).escape_debug()),
            );
        }
        let (place, seen) = self.known.entry(name.to_owned()).or_insert_with(|| (next, SiblingKeys::new()));
        // Without merging, descriptors of different files are not siblings.
        let mut apart = SiblingKeys::new();
        let seen = if self.merge { seen } else { &mut apart };
        let mut reader = DescriptorReader { report, count: &mut self.descriptors };
        let descriptors = reader.all(root, name, seen);
        if is_new {
            self.read.domains.push((name.to_owned(), descriptors));
        } else if let Some((_, all)) = self.read.domains.get_mut(*place) {
            all.extend(descriptors);
        }
    }
}

fn error(file: &str, reason: &str) -> EnvoyError {
    EnvoyError { file: file.to_owned(), reason: reason.to_owned(), at: None }
}
