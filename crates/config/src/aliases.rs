//! Resolves anchors, aliases and merge keys (`<<`), in files that were written for other programs.

use std::collections::{HashMap, HashSet};

use super::errors::MistakeReport;
use super::yaml_node::{Content, YamlNode};

/// Anchored nodes by anchor number.
#[derive(Debug, Default)]
pub(super) struct Aliases(HashMap<usize, Anchor>);

/// An anchored node.
#[derive(Debug)]
pub(super) struct Anchor {
    pub(super) node: YamlNode,
    /// The number of nodes of the value.
    pub(super) size: usize,
    /// The nesting depth of the value.
    pub(super) depth: usize,
}

impl Aliases {
    /// Stores an anchored node, and returns its number of nodes.
    pub(super) fn keep(&mut self, anchor: usize, node: &YamlNode) -> usize {
        let (size, depth) = measure(node);
        self.0.insert(anchor, Anchor { node: node.clone(), size, depth });
        size
    }

    /// Returns the node of an anchor, if it is complete.
    pub(super) fn get(&self, anchor: usize) -> Option<&Anchor> {
        self.0.get(&anchor)
    }
}

/// Returns the number of nodes and the nesting depth. The composer bounds the depth, and so the recursion.
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

/// Returns the entries of a mapping, followed by those of its merge keys.
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
