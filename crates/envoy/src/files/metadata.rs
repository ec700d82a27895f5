//! The `metadata` of a descriptor: arbitrary values, kept as written.

use crate::rules::Metadata;
use weir_config::foreign::{Content, MistakeReport, YamlNode};

use super::scalar::{Plain, plain};

/// Reads `node` as metadata.
pub(super) fn metadata(node: &YamlNode, report: &mut MistakeReport) -> Option<Metadata> {
    match &node.content {
        Content::Map(_) => Some(value(node)),
        Content::Empty | Content::Refused => None,
        Content::Scalar { .. } | Content::List(_) => {
            report.at(node.at, "", "metadata must be a mapping of keys");
            None
        }
    }
}

/// Converts a value. The recursion is bounded by the depth of the tree.
fn value(node: &YamlNode) -> Metadata {
    match &node.content {
        Content::Empty | Content::Refused => Metadata::Null,
        Content::Scalar { text, quoted: true } => Metadata::Text(text.as_str().into()),
        Content::Scalar { text, quoted: false } => match plain(text) {
            Plain::Bool(value) => Metadata::Bool(value),
            Plain::Int(number) => Metadata::Number(number as f64),
            Plain::Float(number) => Metadata::Number(number),
            Plain::Text(text) => Metadata::Text(text.into()),
        },
        Content::List(items) => Metadata::List(items.iter().map(value).collect()),
        Content::Map(entries) => {
            let name = |key: &YamlNode| match &key.content {
                Content::Scalar { text, .. } => text.as_str().into(),
                _ => "null".into(),
            };
            Metadata::Map(entries.iter().map(|(key, node)| (name(key), value(node))).collect())
        }
    }
}
