//! Reads a file into a [`Config`], or reports all mistakes in it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_core::key::KeySecret;
use weir_core::strategy::Rules;

use super::errors::{ConfigErrors, MistakeReport, Position};
use super::fields::{Mapping, NamedNode};
use super::groups::{self, KnownGroups};
use super::overrides::ConfigOverrides;
use super::store::StoreSection;
use super::strategies::OtherSections;
use super::table::{DenialMessages, EnvoyConfig};
use super::tree::{Content, YamlNode, compose, end_of};
use super::{
    Config, ConfigFingerprint, ConfigOrigin, StoreConfig, WrittenStrategies, access, authorize, control,
    envoy, log, overrides_section, queues, resources, server, store, strategies, usage,
};

/// The default configuration without a file: a complete example with comments, to copy and change.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// Maximum size of a configuration file, in bytes.
pub const MAX_FILE: usize = 16 << 20;

/// The result of checking a file.
#[derive(Debug)]
pub struct Checked {
    /// The configuration, or all mistakes in it.
    pub config: Result<Config, ConfigErrors>,
    /// Files that are missing on this machine and may exist on the target: a line each.
    pub notes: Vec<String>,
    /// The `envoy` section, as far as it could be read, so that its files can be checked in the same run.
    pub envoy: EnvoyConfig,
}

impl Config {
    /// Returns the configuration of [`EXAMPLE`]: the memory store and one strategy.
    #[must_use]
    pub fn built_in() -> Self {
        // The text is part of the program, and a test parses it: no caller can make this fail.
        Self::built_in_with(&ConfigOverrides::default()).unwrap_or_else(|errors| unreachable!("{errors}"))
    }

    /// Returns the configuration of [`EXAMPLE`], overridden by `settings`.
    pub fn built_in_with(settings: &ConfigOverrides) -> Result<Self, ConfigErrors> {
        let config = Self::parse(EXAMPLE, "built-in example", settings)?;
        Ok(Self { source: None, ..config })
    }

    /// Loads the configuration of a file, overridden by `settings`.
    pub fn load(path: impl AsRef<Path>, settings: &ConfigOverrides) -> Result<Self, ConfigErrors> {
        let path = path.as_ref();
        let mut report = MistakeReport::of(path);
        let origin = ConfigOrigin { file: path.to_owned(), overrides: settings.clone() };
        let config = from_file(path, settings, &mut report);
        let config = Self { source: Some(path.to_owned()), origin: Some(origin), ..config };
        report.finish(&path.display().to_string(), config)
    }

    /// Validates a file as [`load`](Self::load) does, without using it. A file with a secret may be missing on this
    /// machine.
    #[must_use]
    pub fn check(path: impl AsRef<Path>, settings: &ConfigOverrides) -> Checked {
        let (path, source) = (path.as_ref(), path.as_ref().display().to_string());
        let mut report = MistakeReport::of(path).with_notes();
        let config = from_file(path, settings, &mut report);
        let config = Self { source: Some(path.to_owned()), ..config };
        let (notes, envoy) = (report.notes(&source), config.envoy.clone());
        Checked { config: report.finish(&source, config), notes, envoy }
    }

    /// Parses the configuration in `text`, overridden by `settings`. Errors name it `source`.
    pub fn parse(text: &str, source: &str, settings: &ConfigOverrides) -> Result<Self, ConfigErrors> {
        let mut report = MistakeReport::default();
        let config = read(check_size(text.as_bytes(), &mut report).map(|_| text), settings, &mut report);
        let config = report.finish(source, config)?;
        Ok(Self { source: Some(PathBuf::from(source)), ..config })
    }
}

fn from_file(path: &Path, settings: &ConfigOverrides, report: &mut MistakeReport) -> Config {
    let text = read_file(path, report);
    read(text.as_deref(), settings, report)
}

/// Reads all that is valid. Anything else gets its default and a report, which fails the whole configuration.
fn read(text: Option<&str>, settings: &ConfigOverrides, report: &mut MistakeReport) -> Config {
    let tree = text.and_then(|text| compose(text, report)).unwrap_or_else(|| {
        // If nothing could be read, no key is reported as missing; overrides are still validated.
        YamlNode { at: Position { line: 1, column: 1 }, content: Content::Empty, cut: !report.is_empty() }
    });
    settings.report_unknown(report);
    let fingerprint = ConfigFingerprint::of(&tree, settings);
    let mut root = Mapping::of(&NamedNode::root(&tree), report);
    let server = server::server(root.section("server", report), settings, report);
    let StoreSection { mut store, key_secret, namespace, shards } =
        store::store(root.section("store", report), settings, report);
    let envoy = envoy::envoy(root.section("envoy", report), settings, report);
    let queues = queues::queues(&mut root, server.limits.max_buffered_bytes, report);
    let others = OtherSections {
        envoy: envoy.config.is_some() || envoy.xds.is_some(),
        inline: server.inline_limits,
        queues: !queues.all().is_empty(),
    };
    let strategies = strategies::strategies(&mut root, others, report);
    let before = report.len();
    let resources = resources::resources(&mut root, &strategies, report);
    let known = KnownGroups::of(&resources, report.len() == before);
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
    let usage = usage::usage(root.section("usage", report), has_redis, settings, report);
    let mut sentences = root.section("messages", report);
    let messages = DenialMessages::read(&mut sentences, settings, report);
    sentences.finish(report);
    let control = control::control(root.section("control", report), (&server, has_redis), settings, report);
    let keeps = server.control || settings.keeps_written();
    let written = if keeps { WrittenStrategies::of(&tree) } else { WrittenStrategies::default() };
    let decision_log = log::log(root.section("log", report), settings, report);
    root.finish(report);
    let rules = Rules::new(strategies.made, resources);
    let rules = rules.with_access(access, strategies.access);
    let mut rules = rules.with_shadows(&strategies.shadows, &overrides).with_overrides(overrides);
    if server.inline_limits {
        rules = rules.with_inline_limits();
    }
    Config {
        server,
        store,
        key_secret,
        namespace,
        rules,
        authorize,
        queues,
        envoy,
        usage,
        messages,
        decision_log,
        control,
        written: Arc::new(written),
        source: None,
        origin: None,
        fingerprint,
    }
}

fn read_file(path: &Path, report: &mut MistakeReport) -> Option<String> {
    let mut bytes = Vec::new();
    // Reading one byte more than allowed detects a file that is too large, even an endless one.
    let read = File::open(path).and_then(|file| file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        report.file(format!("cannot be read: {error}"));
        return None;
    }
    check_size(&bytes, report)?;
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            report.at(end_of(&String::from_utf8_lossy(valid)), "", "is not UTF-8 from here on");
            None
        }
    }
}

fn check_size(bytes: &[u8], report: &mut MistakeReport) -> Option<()> {
    if bytes.len() > MAX_FILE {
        report
            .file(format!("is larger than {MAX_FILE} bytes (16 MiB), which is the most a configuration has"));
        return None;
    }
    Some(())
}
