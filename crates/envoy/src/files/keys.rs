//! Checks the keys of a whole file first: rejects what the reference implementation rejects, in its words.

use std::collections::HashMap;

use super::node::Map;
use super::scalar::{Plain, plain};
use weir_config::Position;
use weir_config::foreign::{Content, MistakeReport, YamlNode, nearest, shortened};

/// Keys that have an effect, by the mapping they belong to.
const ROOT: [&str; 2] = ["domain", "descriptors"];
const DESCRIPTOR: [&str; 12] = [
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "shadow_mode",
    "quota_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
    "value_cidr",
    "value_regex",
];
const RATE_LIMIT: [&str; 12] = [
    "unit",
    "requests_per_unit",
    "unlimited",
    "name",
    "replaces",
    "algorithm",
    "burst",
    "unit_multiplier",
    "on_store_failure",
    "count_rejected",
    "bill",
    "max_debt",
];

/// Our extensions. Existing files do not have them, so a misplaced one is a mistake, not just a key without effect.
const OURS: [&str; 9] = [
    "value_cidr",
    "value_regex",
    "algorithm",
    "burst",
    "unit_multiplier",
    "on_store_failure",
    "count_rejected",
    "bill",
    "max_debt",
];

/// The kind of a mapping, which determines its valid keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Root,
    Descriptor,
    RateLimit,
    Replace,
}

/// Reports mistakes in the keys of a file, and returns warnings about keys without effect.
pub(super) fn check(root: &YamlNode, report: &mut MistakeReport) -> Vec<(Position, String)> {
    let mut check = Check { report, idle: Vec::new() };
    if let Content::Map(entries) = &root.content {
        check.map(entries, Of::Root);
    }
    check.idle
}

struct Check<'r> {
    report: &'r mut MistakeReport,
    idle: Vec<(Position, String)>,
}

impl Check<'_> {
    fn map(&mut self, entries: &[(YamlNode, YamlNode)], of: Of) {
        let mut seen: HashMap<&str, Position> = HashMap::new();
        for (key, value) in entries {
            let Some(name) = self.name(key) else { continue };
            if let Some(Position { line, column, .. }) = seen.insert(name, key.at) {
                let reason = format!(
                    "config error, key '{name}' is given twice; the first is at line {line}, column {column}"
                );
                self.report.at(key.at, "", reason);
                continue;
            }
            if self.known(name, key.at, of) {
                self.value(name, value);
            }
        }
        if of == Of::Descriptor {
            self.modes_without_limit(entries);
            self.metrics_by_value(entries);
        }
    }

    /// Returns the name of a key, if it is valid.
    fn name<'t>(&mut self, key: &'t YamlNode) -> Option<&'t str> {
        let shown = match &key.content {
            Content::Refused => return None,
            Content::Empty => "<nil>".to_owned(),
            Content::List(_) => "a list".to_owned(),
            Content::Map(_) => "a mapping".to_owned(),
            Content::Scalar { text, quoted: true } => return Some(text),
            Content::Scalar { text, quoted: false } => match plain(text) {
                Plain::Text(text) => return Some(text),
                Plain::Bool(value) => value.to_string(),
                Plain::Int(number) => number.to_string(),
                Plain::Float(number) => number.to_string(),
            },
        };
        self.report.at(key.at, "", format!("config error, key is not of type string: {shown}"));
        None
    }

    /// True if the key is a known one, even where it has no effect.
    fn known(&mut self, name: &str, at: Position, of: Of) -> bool {
        let all = || ROOT.iter().chain(&DESCRIPTOR).chain(&RATE_LIMIT).copied();
        if !all().any(|known| known == name) {
            let near = if self.report.is_full() { None } else { nearest(name, all()) };
            let help = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
            self.report.at(
                at,
                "",
                format!("config error, unknown key '{}'{help}", shortened(name).escape_debug()),
            );
            return false;
        }
        let (here, place): (&[&str], _) = match of {
            Of::Root => (&ROOT, "at the root"),
            Of::Descriptor => (&DESCRIPTOR, "in a descriptor"),
            Of::RateLimit => (&RATE_LIMIT, "in rate_limit"),
            Of::Replace => (&["name"], "in replaces"),
        };
        if here.contains(&name) {
            return true;
        }
        let home = match name {
            "domain" => "at the root",
            _ if DESCRIPTOR.contains(&name) => "in a descriptor",
            _ => "in rate_limit",
        };
        let reason = format!("key '{name}' has no effect {place}; it belongs {home}");
        if OURS.contains(&name) {
            self.report.at(at, "", format!("config error, {reason}"));
        } else {
            self.idle.push((at, reason));
        }
        true
    }

    fn value(&mut self, name: &str, value: &YamlNode) {
        let below = match name {
            "metadata" | "value_cidr" => return,
            "rate_limit" => Of::RateLimit,
            "replaces" => Of::Replace,
            _ => Of::Descriptor,
        };
        match &value.content {
            Content::Map(entries) => self.map(entries, below),
            Content::List(items) => items.iter().for_each(|item| self.item(item, below)),
            Content::Scalar { text, quoted: false } if matches!(plain(text), Plain::Float(_)) => {
                let reason = format!(
                    "error checking config: {} is a number with a fraction; put text in quotes",
                    shortened(text)
                );
                self.report.at(value.at, "", reason);
            }
            Content::Scalar { .. } | Content::Empty | Content::Refused => {}
        }
    }

    fn item(&mut self, item: &YamlNode, of: Of) {
        let shown = match &item.content {
            Content::Map(entries) => return self.map(entries, of),
            Content::Refused => return,
            Content::Scalar { text, .. } => shortened(text).escape_debug().to_string(),
            Content::Empty => "<nil>".to_owned(),
            Content::List(_) => "a list".to_owned(),
        };
        let reason = format!("config error, yaml file contains list of type other than map: {shown}");
        self.report.at(item.at, "", reason);
    }

    /// Warns about rules that ask for metrics by values of requests.
    fn metrics_by_value(&mut self, entries: &[(YamlNode, YamlNode)]) {
        let map = Map::new(entries);
        let has_limit = map.get("rate_limit").is_some_and(|node| !matches!(node.content, Content::Empty));
        for (name, counts) in [("detailed_metric", has_limit), ("value_to_metric", true)] {
            let asks = |node: &YamlNode| matches!(&node.content, Content::Scalar { text, .. } if plain(text) == Plain::Bool(true));
            if let Some((at, _)) = map.entry(name).filter(|(_, value)| counts && asks(value)) {
                self.idle.push((at, format!("key '{name}' has no effect: no metric has values of requests")));
            }
        }
    }

    /// Warns about modes without a limit, which have no effect.
    fn modes_without_limit(&mut self, entries: &[(YamlNode, YamlNode)]) {
        let map = Map::new(entries);
        if map.get("rate_limit").is_some_and(|node| !matches!(node.content, Content::Empty)) {
            return;
        }
        let says = |node: &YamlNode| !matches!(&node.content, Content::Scalar { text, .. } if plain(text) == Plain::Bool(false));
        for name in ["shadow_mode", "quota_mode", "detailed_metric", "metadata"] {
            if let Some((at, _)) = map.entry(name).filter(|(_, value)| says(value)) {
                self.idle.push((at, format!("key '{name}' has no effect without rate_limit beside it")));
            }
        }
    }
}
