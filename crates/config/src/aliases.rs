//! What anchors name and aliases and merge keys (`<<`) stand for, in files that are written for others.

use std::collections::{HashMap, HashSet};

use super::errors::MistakeReport;
use super::tree::{Content, YamlNode};

/// What has an anchor, by the anchor's number.
#[derive(Debug, Default)]
pub(super) struct Aliases(HashMap<usize, Anchor>);

/// A node that has an anchor.
#[derive(Debug)]
pub(super) struct Anchor {
    pub(super) node: YamlNode,
    /// How many nodes it is.
    pub(super) size: usize,
    /// How deep it nests.
    pub(super) depth: usize,
}

impl Aliases {
    /// Keeps a node, and says how many it is.
    pub(super) fn keep(&mut self, anchor: usize, node: &YamlNode) -> usize {
        let (size, depth) = measure(node);
        self.0.insert(anchor, Anchor { node: node.clone(), size, depth });
        size
    }

    /// The node of an anchor, if it has ended.
    pub(super) fn get(&self, anchor: usize) -> Option<&Anchor> {
        self.0.get(&anchor)
    }
}

/// How many nodes it is, and how deep it nests. No node nests deeper than the composer lets it.
fn measure(node: &YamlNode) -> (usize, usize) {
    let below = |nodes: &mut dyn Iterator<Item = &YamlNode>| {
        nodes.map(measure).fold((1, 1), |(size, depth), (s, d)| (size + s, depth.max(d + 1)))
    };
    match &node.content {
        Content::List(items) => below(&mut items.iter()),
        Content::Map(entries) => below(&mut entries.iter().flat_map(|(key, value)| [key, value])),
        Content::Empty | Content::Scalar { .. } | Content::Refused => (1, 0),
    }
}

/// The entries of a mapping with those of its merge keys, which go behind its own.
pub(super) fn merged(
    entries: Vec<(YamlNode, YamlNode)>,
    report: &mut MistakeReport,
) -> Vec<(YamlNode, YamlNode)> {
    if !entries.iter().any(|(key, _)| is_merge(key)) {
        return entries;
    }
    let (merges, mut own): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| is_merge(key));
    let mut given: HashSet<String> = own.iter().filter_map(|(key, _)| name(key)).collect();
    for (key, value) in merges {
        let maps = match value.content {
            Content::List(items) => items,
            _ => vec![value],
        };
        for map in maps {
            match map.content {
                Content::Map(entries) => {
                    own.extend(
                        entries
                            .into_iter()
                            .filter(|(key, _)| name(key).is_none_or(|name| given.insert(name))),
                    );
                }
                Content::Refused => {}
                _ => report.at(key.at, "", "map merge requires map or sequence of maps as the value"),
            }
        }
    }
    own
}

fn is_merge(key: &YamlNode) -> bool {
    matches!(&key.content, Content::Scalar { text, quoted: false } if text == "<<")
}

fn name(key: &YamlNode) -> Option<String> {
    match &key.content {
        Content::Scalar { text, .. } => Some(text.clone()),
        _ => None,
    }
}
