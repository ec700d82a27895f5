//! Reads a file into a [`Config`], or reports all mistakes in it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_core::key::KeySecret;
use weir_core::strategy::{Access, Override, Resources, Rules};

use super::errors::{ConfigErrors, MistakeReport, Position};
use super::expand::{Expander, ValueFiles};
use super::feature_section::FeatureSection;
use super::fields::{Mapping, NamedNode};
use super::files::{ConfigFile, MAX_FILE, files_of};
use super::groups::{self, KnownGroups};
use super::known_strategies::Strategies;
use super::meanings::StrategyMeanings;
use super::merge::merged;
use super::overrides::ConfigOverrides;
use super::section_reader::ReadBefore;
use super::store::StoreSection;
use super::stores::Topology;
use super::strategies::OtherSections;
use super::table::DenialMessages;
use super::tree::{compose, end_of};
use super::unreadable::unreadable;
use super::watched_files::FilesSnapshot;
use super::yaml_node::{Content, YamlNode};
use super::{
    Config, ConfigFingerprint, ConfigOrigin, StoreConfig, WrittenStrategies, access, authorize, log,
    overrides_section, resources, sections, server, store, strategies,
};

/// The default configuration without a file: a complete example with comments, to copy and change.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// The result of checking a file.
#[derive(Debug)]
pub struct Checked {
    /// The configuration, or all mistakes in it.
    pub config: Result<Config, ConfigErrors>,
    /// Files that are missing on this machine and may exist on the target: a line each.
    pub notes: Vec<String>,
    /// The sections of features, as far as they could be read, so that files which they name can be checked in the same
    /// run.
    pub sections: Vec<FeatureSection>,
}

impl Config {
    /// Returns the configuration of [`EXAMPLE`]: the memory store and three strategies.
    #[must_use]
    pub fn built_in() -> Self {
        // The text is part of the program, and a test parses it: no caller can make this fail.
        Self::built_in_with(&ConfigOverrides::default()).unwrap_or_else(|errors| unreachable!("{errors}"))
    }

    /// Returns the configuration of [`EXAMPLE`], overridden by `settings`.
    pub fn built_in_with(settings: &ConfigOverrides) -> Result<Self, ConfigErrors> {
        let config = Self::parse(EXAMPLE, "built-in example", &settings.clone().with_examples())?;
        Ok(Self { sources: Vec::new(), ..config })
    }

    /// Loads the configuration of a file, or of the files in a directory, overridden by `settings`.
    pub fn load(path: impl AsRef<Path>, settings: &ConfigOverrides) -> Result<Self, ConfigErrors> {
        Self::load_all(&[path.as_ref().to_owned()], settings)
    }

    /// Loads the configuration of several files and directories, overridden by `settings`.
    pub fn load_all(paths: &[PathBuf], settings: &ConfigOverrides) -> Result<Self, ConfigErrors> {
        let (config, origin) = Self::read_all(paths, settings);
        Ok(Self { origin: Some(origin), ..config? })
    }

    /// Validates files as [`load_all`](Self::load_all) does, without using them. A file with a secret may be missing on
    /// this machine.
    #[must_use]
    pub fn check_all(paths: &[PathBuf], settings: &ConfigOverrides) -> Checked {
        let mut report = MistakeReport::default().with_notes();
        let (config, _) = from_files(paths, settings, &mut report);
        let (notes, sections) = (report.notes(), config.sections.clone());
        Checked { config: report.finish(&shown(paths), config), notes, sections }
    }

    /// Validates a text as [`check_all`](Self::check_all) validates files. Paths in it are relative to the working directory.
    #[must_use]
    pub fn check_text(text: &str, source: &str, settings: &ConfigOverrides) -> Checked {
        let mut report = MistakeReport::default().with_notes();
        report.begin_file(Path::new(source));
        let tree = check_size(text.len(), &mut report).and_then(|()| compose(text, &mut 0, &mut report));
        report.end_files();
        let (config, _) = read(tree, settings, &mut report);
        let (notes, sections) = (report.notes(), config.sections.clone());
        Checked { config: report.finish(source, config), notes, sections }
    }

    /// Parses the configuration in `text`, overridden by `settings`. Errors name it `source`.
    pub fn parse(text: &str, source: &str, settings: &ConfigOverrides) -> Result<Self, ConfigErrors> {
        let mut report = MistakeReport::default();
        let tree = check_size(text.len(), &mut report).and_then(|()| compose(text, &mut 0, &mut report));
        let (config, _) = read(tree, settings, &mut report);
        let config = report.finish(source, config)?;
        Ok(Self { sources: vec![PathBuf::from(source)], ..config })
    }

    /// Reads files, and remembers which ones.
    pub(super) fn read_all(
        paths: &[PathBuf],
        settings: &ConfigOverrides,
    ) -> (Result<Self, ConfigErrors>, ConfigOrigin) {
        let mut report = MistakeReport::default();
        let (config, origin) = from_files(paths, settings, &mut report);
        (report.finish(&shown(paths), config), origin)
    }
}

/// The name of a configuration of these files.
fn shown(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn from_files(
    paths: &[PathBuf],
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> (Config, ConfigOrigin) {
    let (mut trees, mut files, mut as_read) = (Vec::new(), Vec::new(), FilesSnapshot::default());
    let (mut bytes, mut nodes) = (0, 0);
    for ConfigFile { path, mistake } in files_of(paths) {
        report.begin_file(&path);
        as_read.add(&path);
        match mistake {
            Some(reason) => report.file(reason),
            None => {
                let text = read_file(&path, &mut bytes, report);
                trees.extend(text.and_then(|text| compose(&text, &mut nodes, report)));
            }
        }
        files.push(path);
    }
    report.end_files();
    let (config, named) = read(merged(trees, settings.sections(), report), settings, report);
    as_read.append(named.files);
    let (paths, overrides) = (paths.to_vec(), settings.clone());
    let config = Config { sources: paths.clone(), ..config };
    (config, ConfigOrigin { paths, overrides, files, value_files: named.paths, as_read })
}

/// Reads all that is valid. Anything else gets its default and a report, which fails the whole configuration.
fn read(
    tree: Option<YamlNode>,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> (Config, ValueFiles) {
    let mut tree = tree.unwrap_or_else(|| {
        // If nothing could be read, no key is reported as missing; overrides are still validated.
        let at = Position { line: 1, column: 1, ..Position::default() };
        YamlNode { at, content: Content::Empty, cut: !report.is_empty() }
    });
    let value_files = Expander::new(settings.variables, report).all(&mut tree);
    settings.report_unknown(settings.section_flags(), report);
    let (fingerprint, meanings) =
        (ConfigFingerprint::from_tree(&tree, settings), StrategyMeanings::from_tree(&tree));
    let mut root = Mapping::new(&NamedNode::root(&tree), report);
    let server = server::server(root.section("server", report), settings, report);
    let StoreSection { mut store, key_secret, namespace, shards } =
        store::store(root.section("store", report), settings, report);
    let in_memory = matches!(store, StoreConfig::Memory(_));
    let sufficing = sections::sufficing(&mut root, settings);
    let others = OtherSections {
        sufficing: &sufficing,
        inline: server.inline_limits,
        memory: in_memory,
        slots: matches!(&store, StoreConfig::Redis(redis) if redis.topology == Topology::Cluster),
        control: server.control,
    };
    let strategies = strategies::strategies(&mut root, others, report);
    let before = report.len();
    let resources = resources::resources(&mut root, &strategies, report);
    let known = KnownGroups::new(&resources, report.len() == before);
    let secret = key_secret.unwrap_or(KeySecret::BUILT_IN);
    let placements = groups::groups(&mut root, &known, shards, &secret, report);
    if let StoreConfig::Redis(redis) = &mut store {
        redis.placements = placements;
    }
    let overrides = overrides_section::overrides(&mut root, &strategies, report);
    let access = access::access(root.section("access", report), report);
    let issuers = server.identity.iter().flat_map(|identity| &identity.jwt);
    let issuers: Vec<String> = issuers.map(|issuer| issuer.issuer.clone()).collect();
    let authorize = authorize::authorize(&mut root, &issuers, report);
    let has_redis = matches!(store, StoreConfig::Redis(_));
    let messages = messages(root.section("messages", report), settings, report);
    let keeps = server.control || settings.keeps_written;
    let written = if keeps { WrittenStrategies::from_tree(&tree) } else { WrittenStrategies::default() };
    let decision_log = log::log(root.section("log", report), settings, report);
    let mut rules = rules(strategies, resources, access, overrides);
    if server.inline_limits {
        rules = rules.with_inline_limits();
    }
    let before = ReadBefore { server: &server, rules: &rules, has_redis };
    let sections = sections::sections(&mut root, before, settings, report);
    root.finish(report);
    let config = Config {
        server,
        store,
        key_secret,
        namespace,
        rules,
        authorize,
        messages,
        decision_log,
        sources: Vec::new(),
        sections,
        written: Arc::new(written),
        origin: None,
        fingerprint,
        meanings,
    };
    (config, value_files)
}

fn messages(
    mut section: Mapping<'_>,
    settings: &ConfigOverrides,
    report: &mut MistakeReport,
) -> DenialMessages {
    let messages = DenialMessages::read(&mut section, &settings.given, report);
    section.finish(report);
    messages
}

fn rules(strategies: Strategies, resources: Resources, access: Access, overrides: Vec<Override>) -> Rules {
    let rules = Rules::new(strategies.made, resources).with_access(access, strategies.access);
    rules.with_shadows(&strategies.shadows, &overrides).with_overrides(overrides)
}

/// Reads a file. `bytes` counts those of all files.
fn read_file(path: &Path, bytes: &mut usize, report: &mut MistakeReport) -> Option<String> {
    let mut text = Vec::new();
    // Reading one byte more than allowed detects a file that is too large, even an endless one.
    let most = (MAX_FILE - (*bytes).min(MAX_FILE)) as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut text));
    if let Err(error) = read {
        report.file(format!("cannot be read: {}", unreadable(path, &error)));
        return None;
    }
    *bytes += text.len();
    check_size(*bytes, report)?;
    match String::from_utf8(text) {
        Ok(text) => Some(text),
        Err(error) => {
            let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let at = end_of(&String::from_utf8_lossy(valid), report.file_number());
            report.at(at, "", "is not UTF-8 from here on");
            None
        }
    }
}

/// Checks the size of all files so far.
fn check_size(bytes: usize, report: &mut MistakeReport) -> Option<()> {
    if bytes > MAX_FILE {
        let with = if report.file_number() > 0 { "with the files before it " } else { "" };
        report.file(format!(
            "{with}is larger than {MAX_FILE} bytes (16 MiB), which is the most a configuration has"
        ));
        return None;
    }
    Some(())
}
