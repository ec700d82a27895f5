//! Typed access to the values of the tree. A key that no reader has asked for is unknown.

use std::collections::HashMap;

use super::errors::{MistakeReport, Position};
use super::shorthand;
use super::values::{Scalar, nearest, quote, shortened};
use super::yaml_node::{Content, YamlNode};

/// Maximum length of a file path, in bytes.
pub(super) const MAX_PATH: usize = 4096;

/// A node and its path.
#[derive(Debug, Clone)]
pub(super) struct NamedNode<'t> {
    node: &'t YamlNode,
    path: String,
}

/// An entry of a mapping.
#[derive(Debug, Clone)]
pub(super) struct KeyedValue<'t> {
    /// The key.
    pub(super) name: &'t str,
    /// The position of the key.
    pub(super) key_at: Position,
    /// The value.
    pub(super) value: NamedNode<'t>,
}

impl KeyedValue<'_> {
    /// Reports a mistake of this key.
    pub(super) fn report(&self, report: &mut MistakeReport, reason: impl Into<String>) {
        report.at(self.key_at, self.value.path(), reason);
    }
}

impl<'t> NamedNode<'t> {
    /// Wraps the root of a file.
    pub(super) fn root(node: &'t YamlNode) -> Self {
        Self { node, path: String::new() }
    }

    /// Wraps a node at `path`.
    pub(super) fn new(node: &'t YamlNode, path: String) -> Self {
        Self { node, path }
    }

    /// Returns its position.
    pub(super) fn at(&self) -> Position {
        self.node.at
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// True if a syntax error truncated it.
    pub(super) fn is_cut(&self) -> bool {
        self.node.cut
    }

    /// True if it is a mapping with keys.
    pub(super) fn is_mapping(&self) -> bool {
        matches!(self.node.content, Content::Map(_))
    }

    /// True if it is a mapping that has an entry.
    pub(super) fn has_entries(&self) -> bool {
        matches!(&self.node.content, Content::Map(entries) if !entries.is_empty())
    }

    /// Reports a mistake of this value.
    pub(super) fn report(&self, report: &mut MistakeReport, reason: impl Into<String>) {
        report.at(self.at(), &self.path, reason);
    }

    /// Parses a scalar with `parse`, and reports its error.
    pub(super) fn read<T>(
        &self,
        report: &mut MistakeReport,
        parse: impl FnOnce(Scalar<'t>) -> Result<T, String>,
    ) -> Option<T> {
        let found = match &self.node.content {
            Content::Scalar { text, quoted } => parse(Scalar { text, quoted: *quoted }),
            Content::Empty => Err("is empty; give it a value or remove it".to_owned()),
            Content::List(_) => Err("must be a single value, not a list".to_owned()),
            Content::Map(_) => Err("must be a single value, not a mapping".to_owned()),
            Content::Refused => return None,
        };
        found.map_err(|reason| self.report(report, reason)).ok()
    }

    /// Returns the items of a list; an empty value is an empty list.
    pub(super) fn items(&self, report: &mut MistakeReport) -> Option<Vec<Self>> {
        let item = |(index, node)| Self { node, path: format!("{}[{index}]", self.path) };
        match &self.node.content {
            Content::List(items) => return Some(items.iter().enumerate().map(item).collect()),
            Content::Empty => return Some(Vec::new()),
            Content::Refused => {}
            Content::Scalar { .. } => {
                self.report(report, "must be a list, such as [a, b], not a single value")
            }
            Content::Map(_) => {
                self.report(report, "must be a list, with `-` before each item, not a mapping")
            }
        }
        None
    }

    /// Returns the entries of a mapping, each key once; an empty value is an empty mapping.
    pub(super) fn entries(&self, report: &mut MistakeReport) -> Option<Vec<KeyedValue<'t>>> {
        match &self.node.content {
            Content::Map(entries) => return Some(self.named(entries, report)),
            Content::Empty => return Some(Vec::new()),
            Content::Refused => {}
            Content::Scalar { text, .. } => {
                let instead = shorthand::written_out(&self.path, text);
                let instead = instead.map(|instead| format!("; write {instead}")).unwrap_or_default();
                self.report(report, format!("must be a mapping of keys, not a single value{instead}"));
            }
            Content::List(_) => self.report(report, "must be a mapping of keys, not a list"),
        }
        None
    }

    fn named(&self, entries: &'t [(YamlNode, YamlNode)], report: &mut MistakeReport) -> Vec<KeyedValue<'t>> {
        let mut seen: HashMap<&str, Position> = HashMap::with_capacity(entries.len());
        let mut named = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            let name = match &key.content {
                Content::Scalar { text, .. } => text,
                Content::Refused => continue,
                Content::Empty | Content::List(_) | Content::Map(_) => {
                    report.at(key.at, &self.path, "a key must be a single word");
                    continue;
                }
            };
            let value = Self { node, path: join(&self.path, name) };
            if let Some(first) = seen.get(name.as_str()) {
                let reason = format!("is given twice; the first is at {}", report.place(*first, key.at));
                report.at(key.at, &value.path, reason);
                continue;
            }
            seen.insert(name, key.at);
            named.push(KeyedValue { name, key_at: key.at, value });
        }
        named
    }
}

/// A reader of a mapping, which takes its keys one by one.
#[derive(Debug)]
pub(super) struct Mapping<'t> {
    path: String,
    /// The position of the mapping; `None` if it is not in the file.
    at: Option<Position>,
    /// True if the mapping was read completely.
    whole: bool,
    entries: Vec<KeyedValue<'t>>,
    asked: Vec<&'static str>,
}

impl<'t> Mapping<'t> {
    /// Reads a value as a mapping.
    pub(super) fn new(value: &NamedNode<'t>, report: &mut MistakeReport) -> Self {
        let entries = value.entries(report);
        Self {
            path: value.path.clone(),
            at: Some(value.at()),
            whole: entries.is_some() && !value.is_cut(),
            entries: entries.unwrap_or_default(),
            asked: Vec::new(),
        }
    }

    /// Reads an optional section as a mapping.
    pub(super) fn section(&mut self, name: &'static str, report: &mut MistakeReport) -> Self {
        match self.take(name) {
            Some(value) => Self::new(&value, report),
            None => {
                let path = join(&self.path, name);
                Self { path, at: None, whole: true, entries: Vec::new(), asked: Vec::new() }
            }
        }
    }

    /// True if the mapping is in the file.
    pub(super) fn is_present(&self) -> bool {
        self.at.is_some()
    }

    /// True if the mapping was read completely, so that a missing key is really missing.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// True if the mapping has a key of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// Returns the path of a field.
    pub(super) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// Reports a mistake of field `name` at its value, or at the mapping if the field is absent.
    pub(super) fn report(&self, name: &str, report: &mut MistakeReport, reason: impl Into<String>) {
        let value = self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value.at());
        match value.or(self.at) {
            Some(at) => report.at(at, &self.path_of(name), reason),
            None => report.file(format!("{}: {}", self.path_of(name), reason.into())),
        }
    }

    /// Reports a mistake of the mapping itself.
    pub(super) fn report_here(&self, report: &mut MistakeReport, reason: impl Into<String>) {
        match self.at {
            Some(at) => report.at(at, &self.path, reason),
            None => report.file(reason),
        }
    }

    /// Returns the number of its keys.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes all entries; no key is unknown then.
    pub(super) fn take_all(&mut self) -> Vec<KeyedValue<'t>> {
        std::mem::take(&mut self.entries)
    }

    /// Takes the entry `name`, if it is present.
    pub(super) fn take_entry(&mut self, name: &'static str) -> Option<KeyedValue<'t>> {
        if !self.asked.contains(&name) {
            self.asked.push(name);
        }
        self.entries.iter().find(|entry| entry.name == name).cloned()
    }

    /// Takes the value of `name`, if it is present.
    pub(super) fn take(&mut self, name: &'static str) -> Option<NamedNode<'t>> {
        self.take_entry(name).map(|entry| entry.value)
    }

    /// Takes the value of `name`, and reports a missing one with `help`.
    pub(super) fn require(
        &mut self,
        name: &'static str,
        help: &str,
        report: &mut MistakeReport,
    ) -> Option<NamedNode<'t>> {
        let value = self.take(name);
        if value.is_none() && self.whole {
            self.report(name, report, format!("is missing; {help}"));
        }
        value
    }

    /// Takes and parses the value of `name`, if it is present.
    pub(super) fn read<T>(
        &mut self,
        name: &'static str,
        report: &mut MistakeReport,
        parse: impl FnOnce(Scalar<'t>) -> Result<T, String>,
    ) -> Option<T> {
        self.take(name)?.read(report, parse)
    }

    /// Reports `names`, which are misplaced here, with `reason`.
    pub(super) fn refuse(&mut self, names: &[&'static str], reason: &str, report: &mut MistakeReport) {
        for name in names {
            let entry = self.entries.iter().find(|entry| entry.name == *name);
            if let Some(entry) = entry {
                entry.report(report, reason);
            }
        }
        self.entries.retain(|entry| !names.contains(&entry.name));
    }

    /// Reports every key that no reader has asked for as unknown.
    pub(super) fn finish(self, report: &mut MistakeReport) {
        for entry in self.entries.iter().filter(|entry| !self.asked.contains(&entry.name)) {
            let help = match nearest(entry.name, self.asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are: {}", self.asked.join(", ")),
            };
            entry.report(report, format!("unknown key; {help}"));
        }
    }
}

/// Appends a key to a path. Keys that would make the path ambiguous are quoted.
pub(super) fn join(path: &str, key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/".contains(&byte);
    let key = if !key.is_empty() && key.bytes().all(plain) { shortened(key) } else { quote(key) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
