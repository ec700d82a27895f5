//! Descriptors: their matchers, and their nested descriptors.

use std::collections::HashSet;

use crate::rules::{Cidr, Descriptor, Draft, Glob, Matcher, SharedParts, check_regex};

use super::node::{Map, text};
use super::rate_limit::rate_limit;
use super::{MAX_ENVOY_LEVELS as MAX_LEVELS, RuleCount, metadata};
use weir_config::Position;
use weir_config::foreign::{Content, MistakeReport, YamlNode, quote, shortened};

/// Identities of siblings: their key, and their matcher as text.
pub(super) type SiblingKeys = HashSet<(String, String)>;

/// Maximum number of networks in one descriptor.
const MAX_NETWORKS: usize = 1000;

/// State that the files of a set share while they are read.
#[derive(Debug)]
pub(super) struct ReadSoFar {
    pub(super) max_rules: usize,
    /// Count of all domains that are not refused for their number.
    pub(super) count: RuleCount,
    pub(super) parts: SharedParts,
}

/// A reader of descriptors, which counts them.
pub(super) struct DescriptorReader<'r> {
    report: &'r mut MistakeReport,
    so_far: &'r mut ReadSoFar,
    /// The count before this file.
    before: RuleCount,
    domain: &'r str,
    /// Number of open descriptors.
    levels: usize,
    /// True if the file was told that there are too many.
    is_told: bool,
}

impl<'r> DescriptorReader<'r> {
    /// A reader for one file, after others.
    pub(super) fn new(report: &'r mut MistakeReport, so_far: &'r mut ReadSoFar, domain: &'r str) -> Self {
        Self { report, before: so_far.count, so_far, domain, levels: 0, is_told: false }
    }

    /// Reads the descriptors of the file. One with which there are too many rules does not count for those after it.
    pub(super) fn file(mut self, root: Map<'_>, seen: &mut SiblingKeys) -> Vec<Descriptor> {
        let domain = self.domain;
        let descriptors = self.all(root, domain, seen);
        if self.is_told {
            self.so_far.count = self.before;
        }
        descriptors
    }

    /// Reads the descriptors of `map` at `path`. `seen` are the siblings in other files.
    fn all(&mut self, map: Map<'_>, path: &str, seen: &mut SiblingKeys) -> Vec<Descriptor> {
        let items = map.list("descriptors", "[]config.YamlDescriptor", self.report);
        items.iter().filter_map(|item| self.one(item, path, seen)).collect()
    }

    fn one(&mut self, node: &YamlNode, path: &str, seen: &mut SiblingKeys) -> Option<Descriptor> {
        // The check of the keys has rejected nodes that are not mappings.
        let Content::Map(entries) = &node.content else { return None };
        let map = Map::new(entries);
        let limit = map.get("rate_limit").filter(|node| !matches!(node.content, Content::Empty));
        self.so_far.count.add(limit.is_some());
        if self.is_told {
            return None;
        }
        if let Some(excess) = self.so_far.count.excess(self.so_far.max_rules) {
            let domain = shortened(self.domain);
            let reason = format!("with domain '{}' there are {excess}", domain.escape_debug());
            self.report.at(node.at, "", reason);
            self.is_told = true;
            return None;
        }
        if self.levels == MAX_LEVELS {
            self.report.at(node.at, "", format!("descriptors nest at most {MAX_LEVELS} levels deep"));
            return None;
        }
        let key = self.key(&map, node.at);
        let matcher = self.matcher(&map);
        let mut descriptor = Descriptor {
            key: self.so_far.parts.text(&key.unwrap_or_default()),
            matcher: matcher.unwrap_or(Matcher::Any),
            share_threshold: map.is("share_threshold", self.report),
            value_to_metric: map.is("value_to_metric", self.report),
            rule: None,
            descriptors: Vec::new(),
        };
        let path = format!("{path}.{}", descriptor.path());
        if !descriptor.key.is_empty() {
            self.check(&map, &descriptor, &path, seen, node.at);
        }
        descriptor.rule = self.rule(&map, limit).map(Box::new);
        self.levels += 1;
        descriptor.descriptors = self.all(map, &path, &mut SiblingKeys::new());
        self.levels -= 1;
        Some(descriptor)
    }

    fn key(&mut self, map: &Map<'_>, at: Position) -> Option<String> {
        let reported = self.report.len();
        let key = map.text("key", self.report);
        if key.is_none() && self.report.len() == reported {
            self.report.at(at, "", "descriptor has empty key");
        }
        key.map(str::to_owned)
    }

    /// Checks that siblings differ, and that only wildcard values have `share_threshold`.
    fn check(
        &mut self,
        map: &Map<'_>,
        descriptor: &Descriptor,
        path: &str,
        seen: &mut SiblingKeys,
        at: Position,
    ) {
        if !seen.insert((descriptor.key.to_string(), descriptor.matcher.text())) {
            self.report.at(at, "", format!("duplicate descriptor composite key '{}'", path.escape_debug()));
        }
        if descriptor.share_threshold && !descriptor.is_pattern() {
            let at = map.entry("share_threshold").map_or(at, |(at, _)| at);
            let reason =
                "share_threshold can only be used with wildcard values (containing '*'), but found key";
            self.report.at(at, "", format!("{reason} '{}'", descriptor.path().escape_debug()));
        }
    }

    fn matcher(&mut self, map: &Map<'_>) -> Option<Matcher> {
        let given: Vec<(&str, Position)> = ["value", "value_cidr", "value_regex"]
            .into_iter()
            .filter_map(|name| Some((name, map.entry(name).filter(|(_, value)| !is_blank(value))?.0)))
            .collect();
        if let [(first, _), (second, at), ..] = given.as_slice() {
            let reason = format!(
                "config error, a descriptor has one of value, value_cidr and value_regex; `{second}` stands beside `{first}`"
            );
            self.report.at(*at, "", reason);
        }
        let value = map.text("value", self.report);
        let networks = map.get("value_cidr").map(|node| self.networks(node));
        let regex = map.get("value_regex").and_then(|node| self.regex(node));
        match (value, networks, regex) {
            (Some(value), ..) => Some(match Glob::new(value) {
                Some(glob) => Matcher::Glob(Box::new(glob)),
                None => Matcher::Exact(self.so_far.parts.text(value)),
            }),
            (None, Some(networks), _) => Some(Matcher::Cidr(networks)),
            (None, None, Some(regex)) => Some(Matcher::Regex(regex)),
            (None, None, None) => None,
        }
    }

    fn networks(&mut self, node: &YamlNode) -> Vec<Cidr> {
        let one = std::slice::from_ref(node);
        let items = if let Content::List(items) = &node.content { items } else { one };
        if items.is_empty() || items.len() > MAX_NETWORKS {
            let reason =
                format!("value_cidr has {} networks: it must be from 1 to {MAX_NETWORKS}", items.len());
            self.report.at(node.at, "", reason);
            return Vec::new();
        }
        let mut networks = Vec::with_capacity(items.len());
        for item in items {
            let Some(text) = text(item, self.report) else { continue };
            match text.parse() {
                Ok(network) => networks.push(network),
                Err(error) => self.report.at(item.at, "", format!("value_cidr {}: {error}", quote(text))),
            }
        }
        networks
    }

    fn regex(&mut self, node: &YamlNode) -> Option<String> {
        let text = text(node, self.report)?;
        match check_regex(text) {
            Ok(()) if !text.is_empty() => Some(text.to_owned()),
            Ok(()) => {
                self.report.at(node.at, "", "value_regex must not be empty");
                None
            }
            Err(error) => {
                self.report.at(node.at, "", format!("value_regex {}: {error}", quote(text)));
                None
            }
        }
    }

    /// Reads the descriptor's own limit, with its modes.
    fn rule(&mut self, map: &Map<'_>, limit: Option<&YamlNode>) -> Option<Draft> {
        let shadow_mode = map.is("shadow_mode", self.report);
        let quota_mode = map.is("quota_mode", self.report);
        let detailed_metric = map.is("detailed_metric", self.report);
        let metadata = map.get("metadata").and_then(|node| metadata::metadata(node, self.report));
        let read = rate_limit(limit?, self.report)?;
        let limit = read.limit.map(|limit| self.so_far.parts.share(limit));
        Some(Draft { shadow_mode, quota_mode, detailed_metric, metadata, limit, ..read })
    }
}

/// True if the node is empty, which counts as absent.
fn is_blank(node: &YamlNode) -> bool {
    match &node.content {
        Content::Empty => true,
        Content::Scalar { text, .. } => text.is_empty(),
        _ => false,
    }
}
