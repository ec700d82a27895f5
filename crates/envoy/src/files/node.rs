//! Typed access to the values of a file. Mistakes have the wording of the reference's YAML library.

use super::scalar::{Plain, plain};
use crate::overlay::MAX_ENVOY_TEXT as MAX_TEXT;
use weir_config::Position;
use weir_config::foreign::{Content, MistakeReport, YamlNode, quote, shortened};

/// A mapping whose keys have been checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map<'t>(&'t [(YamlNode, YamlNode)]);

impl<'t> Map<'t> {
    /// Wraps these entries.
    pub(super) const fn new(entries: &'t [(YamlNode, YamlNode)]) -> Self {
        Self(entries)
    }

    /// Reads `node` as a mapping; an empty node is an empty mapping. `into` is the reference's Go type, for errors.
    pub(super) fn from_node(node: &'t YamlNode, into: &str, report: &mut MistakeReport) -> Option<Self> {
        match &node.content {
            Content::Map(entries) => Some(Self(entries)),
            Content::Empty => Some(Self(&[])),
            _ => mismatch(node, into, report),
        }
    }

    /// Returns the value of `name` and the position of the key.
    pub(super) fn entry(&self, name: &str) -> Option<(Position, &'t YamlNode)> {
        let is_it = |key: &YamlNode| matches!(&key.content, Content::Scalar { text, .. } if text == name);
        self.0.iter().find(|(key, _)| is_it(key)).map(|(key, value)| (key.at, value))
    }

    /// Returns the value of `name`.
    pub(super) fn get(&self, name: &str) -> Option<&'t YamlNode> {
        self.entry(name).map(|(_, value)| value)
    }

    /// Returns the text of `name`, if it is given and not empty.
    pub(super) fn text(&self, name: &str, report: &mut MistakeReport) -> Option<&'t str> {
        text(self.get(name)?, report).filter(|text| !text.is_empty())
    }

    /// True if `name` is given and true.
    pub(super) fn is(&self, name: &str, report: &mut MistakeReport) -> bool {
        self.get(name).is_some_and(|node| boolean(node, report))
    }

    /// Returns the number of `name`, if it is given.
    pub(super) fn number(&self, name: &str, report: &mut MistakeReport) -> Option<u32> {
        number(self.get(name)?, report)
    }

    /// Returns the items of the list `name`.
    pub(super) fn list(&self, name: &str, into: &str, report: &mut MistakeReport) -> &'t [YamlNode] {
        let Some(node) = self.get(name) else { return &[] };
        match &node.content {
            Content::List(items) => items,
            Content::Empty => &[],
            _ => mismatch(node, into, report).unwrap_or_default(),
        }
    }
}

/// Reads a text. Any scalar is valid.
pub(super) fn text<'t>(node: &'t YamlNode, report: &mut MistakeReport) -> Option<&'t str> {
    match &node.content {
        Content::Empty => Some(""),
        Content::Scalar { text, .. } if text.len() > MAX_TEXT => {
            let reason = format!("{} is {} bytes long: at most {MAX_TEXT}", quote(text), text.len());
            report.at(node.at, "", reason);
            None
        }
        Content::Scalar { text, .. } => Some(text),
        _ => mismatch(node, "string", report),
    }
}

fn boolean(node: &YamlNode, report: &mut MistakeReport) -> bool {
    match &node.content {
        Content::Empty => false,
        Content::Scalar { text, quoted: false } => match plain(text) {
            Plain::Bool(value) => value,
            _ => mismatch(node, "bool", report).unwrap_or_default(),
        },
        _ => mismatch(node, "bool", report).unwrap_or_default(),
    }
}

fn number(node: &YamlNode, report: &mut MistakeReport) -> Option<u32> {
    match &node.content {
        Content::Empty => Some(0),
        Content::Scalar { text, quoted: false } => match plain(text) {
            Plain::Int(number) => match u32::try_from(number) {
                Ok(number) => Some(number),
                Err(_) => mismatch(node, "uint32", report),
            },
            // The check of the keys has rejected it.
            Plain::Float(_) => None,
            _ => mismatch(node, "uint32", report),
        },
        _ => mismatch(node, "uint32", report),
    }
}

/// Reports a type mismatch.
fn mismatch<T>(node: &YamlNode, into: &str, report: &mut MistakeReport) -> Option<T> {
    let found = match &node.content {
        Content::Refused => return None,
        Content::Empty => "!!null".to_owned(),
        Content::List(_) => "!!seq".to_owned(),
        Content::Map(_) => "!!map".to_owned(),
        Content::Scalar { text, quoted } => {
            let tag = match plain(text) {
                _ if *quoted => "!!str",
                Plain::Bool(_) => "!!bool",
                Plain::Int(_) => "!!int",
                Plain::Float(_) => "!!float",
                Plain::Text(_) => "!!str",
            };
            format!("{tag} `{}`", shortened(text).escape_debug())
        }
    };
    let line = node.at.line;
    let reason = format!(
        "error loading config file: yaml: unmarshal errors: line {line}: cannot unmarshal {found} into {into}"
    );
    report.at(node.at, "", reason);
    None
}
