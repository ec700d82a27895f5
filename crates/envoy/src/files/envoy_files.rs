//! Reads a set of files into domains, or reports all mistakes in them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::rules::{Descriptor, Domains, SharedParts};

use super::descriptor::{DescriptorReader, ReadSoFar, SiblingKeys};
use super::directory::{self, DirectoryListing, MAX_ENVOY_FILE};
use super::errors::{EnvoyError, EnvoyErrors};
use super::folder::EnvoyFolder;
use super::keys;
use super::node::Map;
use super::rule_count::RuleCount;
use crate::overlay::ENVOY_RULES;
use crate::settings::MAX_ENVOY_RULES;
use weir_config::Position;
use weir_config::foreign::{MistakeReport, YamlNode, compose_foreign, shortened};

/// The content of a set of files.
#[derive(Debug, Clone, Default)]
pub struct EnvoyFiles {
    /// Each domain once, with its descriptors, in the order of the files.
    pub domains: Vec<(String, Vec<Descriptor>)>,
    /// Warnings about valid keys without effect, a line each.
    pub warnings: Vec<String>,
    /// Number of files.
    pub count: usize,
    /// Number of entries of the overlay that match no rule; each is a warning, too.
    pub unmatched: usize,
}

impl EnvoyFiles {
    /// Reads every file of `folder`, sorted by name; or `folder` itself, if it is a file. With `merge_domains`, files
    /// may share a domain; otherwise that is a mistake.
    pub fn load(folder: impl Into<EnvoyFolder>, merge_domains: bool) -> Result<Self, EnvoyErrors> {
        let folder = folder.into();
        let (read, errors) = FileSet::read(&folder, &DirectoryListing::list(&folder), merge_domains);
        read.whole(errors)
    }

    /// Parses texts, each with its name for errors.
    pub fn parse<'t>(
        texts: impl IntoIterator<Item = (&'t str, &'t str)>,
        merge_domains: bool,
    ) -> Result<Self, EnvoyErrors> {
        let mut set = FileSet::new(merge_domains, MAX_ENVOY_RULES);
        let mut errors = EnvoyErrors::default();
        for (file, text) in texts {
            set.add(Path::new(file), file, text, &mut errors);
        }
        set.whole(errors)
    }

    /// Compiles the domains for matching.
    #[must_use]
    pub fn compile(self) -> Domains {
        Domains::new(self.domains)
    }
}

/// A set of files as it was read, with its mistakes apart from what is good.
pub(super) struct FileSet {
    merge: bool,
    pub(super) read: EnvoyFiles,
    /// For each domain its index, and the siblings on its first level.
    known: HashMap<String, (usize, SiblingKeys)>,
    so_far: ReadSoFar,
    /// The domain of each file that names one.
    pub(super) homes: HashMap<PathBuf, String>,
    /// Domains with a mistake.
    pub(super) bad: BTreeSet<String>,
    /// Files and directories that name no domain, because they cannot be read.
    pub(super) unread: Vec<PathBuf>,
}

impl FileSet {
    fn new(merge: bool, max_rules: usize) -> Self {
        Self {
            merge,
            read: EnvoyFiles::default(),
            known: HashMap::new(),
            so_far: ReadSoFar { max_rules, count: RuleCount::default(), parts: SharedParts::default() },
            homes: HashMap::new(),
            bad: BTreeSet::new(),
            unread: Vec::new(),
        }
    }

    /// Reads the files of `listing`, which is of `folder`.
    pub(super) fn read(
        folder: &EnvoyFolder,
        listing: &DirectoryListing,
        merge_domains: bool,
    ) -> (Self, EnvoyErrors) {
        let (mut set, mut errors) = (Self::new(merge_domains, folder.max_rules), EnvoyErrors::default());
        if listing.files.is_empty() {
            let reason = "there are no files in it, so nothing is limited";
            set.read.warnings.push(format!("{}: {reason}", folder.path().display()));
        }
        for (path, reason) in &listing.refused {
            errors.add(error(&folder.name(path), reason));
            set.unread.push(path.clone());
        }
        for found in &listing.files {
            let name = folder.name(&found.path);
            match directory::read(&found.path) {
                Ok(text) => set.add(&found.path, &name, &text, &mut errors),
                Err(reason) => {
                    errors.add(error(&name, &reason));
                    set.unread.push(found.path.clone());
                }
            }
        }
        set.lay_over(folder, &mut errors);
        (set, errors)
    }

    /// Changes the rules as the overlay says.
    fn lay_over(&mut self, folder: &EnvoyFolder, errors: &mut EnvoyErrors) {
        let report = folder.overlay.apply(&mut self.read.domains);
        for (domain, reason) in report.mistakes {
            errors.add(error(ENVOY_RULES, &reason));
            self.bad.insert(domain);
        }
        self.read.unmatched = report.unmatched.len();
        self.read.warnings.extend(report.unmatched);
    }

    /// The files as a whole: all of them are good, or none counts.
    pub(super) fn whole(self, errors: EnvoyErrors) -> Result<EnvoyFiles, EnvoyErrors> {
        if errors.is_empty() { Ok(self.read) } else { Err(errors) }
    }

    /// Adds a file. `name` is for errors.
    fn add(&mut self, path: &Path, name: &str, text: &str, errors: &mut EnvoyErrors) {
        self.read.count += 1;
        let domain = match parsed(name, text) {
            Ok(tree) => {
                let mut report = MistakeReport::default();
                let domain = match &tree {
                    Some(tree) => self.domain(name, tree, &mut report),
                    None => {
                        report.file("config file cannot have empty domain");
                        None
                    }
                };
                if let Err(mistakes) = report.finish(name, ()) {
                    errors.extend(&mistakes);
                    self.bad.extend(domain.clone());
                }
                domain
            }
            Err(mistakes) => {
                mistakes.into_iter().for_each(|mistake| errors.add(mistake));
                None
            }
        };
        match domain {
            Some(domain) => drop(self.homes.insert(path.to_owned(), domain)),
            None => self.unread.push(path.to_owned()),
        }
    }

    /// Reads the domain of a file, and returns its name.
    fn domain(&mut self, file: &str, tree: &YamlNode, report: &mut MistakeReport) -> Option<String> {
        for (Position { line, column, .. }, reason) in keys::check(tree, report) {
            self.read.warnings.push(format!("{file}: {reason} (line {line}, column {column})"));
        }
        let root = Map::from_node(tree, "map[interface {}]interface {}", report)?;
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
        let descriptors = DescriptorReader::new(report, &mut self.so_far, name).file(root, seen);
        if is_new {
            self.read.domains.push((name.to_owned(), descriptors));
        } else if let Some((_, all)) = self.read.domains.get_mut(*place) {
            all.extend(descriptors);
        }
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// The tree of a file. Content after a syntax error is unknown, so nothing else is reported.
fn parsed(name: &str, text: &str) -> Result<Option<YamlNode>, Vec<EnvoyError>> {
    if text.len() > MAX_ENVOY_FILE {
        let reason = format!("error loading config file: it is larger than {MAX_ENVOY_FILE} bytes (4 MiB)");
        return Err(vec![error(name, &reason)]);
    }
    let mut syntax = MistakeReport::default();
    let tree = compose_foreign(text, &mut syntax);
    syntax.finish(name, tree).map_err(|errors| {
        let mut all = EnvoyErrors::default();
        all.extend(&errors);
        let told = all.errors().iter().map(|EnvoyError { reason, at, .. }| {
            let reason = format!("error loading config file: yaml: {reason}");
            EnvoyError { file: name.to_owned(), reason, at: *at }
        });
        told.collect()
    })
}

fn error(file: &str, reason: &str) -> EnvoyError {
    EnvoyError { file: file.to_owned(), reason: reason.to_owned(), at: None }
}
