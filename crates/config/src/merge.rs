//! Merges the files of a configuration into one tree. Each file owns some names; a name that two files give stays twice
//! in the tree, and its reader reports both places.

use std::collections::HashMap;

use super::errors::MistakeReport;
use super::sections::SectionSpec;
use super::yaml_node::{Content, YamlNode};

/// Mappings whose entries are owned by one file as a whole, beside those of features.
const NAMED: [&str; 2] = ["strategies", "groups"];

/// Lists that the files continue.
const CONTINUED: [&str; 3] = ["resources", "overrides", "authorize"];

/// The lists of `access`, which the files continue too.
const ACCESS: [&str; 2] = ["allow", "deny"];

/// Merges the trees of the files. `sections` are those of features.
pub(super) fn merged(
    trees: Vec<YamlNode>,
    sections: &[&'static SectionSpec],
    report: &mut MistakeReport,
) -> Option<YamlNode> {
    let mut trees = trees.into_iter();
    let mut all = trees.next()?;
    for tree in trees {
        all.cut |= tree.cut;
        match (&mut all.content, tree.content) {
            (_, Content::Empty | Content::Refused) => {}
            (Content::Empty | Content::Refused, content) => (all.at, all.content) = (tree.at, content),
            (Content::Map(entries), Content::Map(more)) => extend(entries, more, Section::Root(sections)),
            // The reader of the whole reports a first file that is no mapping.
            (_, Content::Map(_)) => {}
            (_, Content::Scalar { .. }) => {
                report.at(tree.at, "", "must be a mapping of keys, not a single value");
            }
            (_, Content::List(_)) => report.at(tree.at, "", "must be a mapping of keys, not a list"),
        }
    }
    Some(all)
}

/// The place of a mapping in the file.
#[derive(Clone, Copy)]
enum Section<'s> {
    /// The top of a file, with the sections of features.
    Root(&'s [&'static SectionSpec]),
    /// `strategies` and the like.
    Named,
    Access,
    /// Settings, at any depth.
    Settings,
}

impl Section<'_> {
    fn child(self, key: &str) -> Self {
        let has_names = |section: &&&SectionSpec| section.named.is_some() && section.name == key;
        match self {
            Self::Root(_) if NAMED.contains(&key) => Self::Named,
            Self::Root(sections) if sections.iter().any(|section| has_names(&section)) => Self::Named,
            Self::Root(_) if key == "access" => Self::Access,
            _ => Self::Settings,
        }
    }

    fn continues(self, key: &str) -> bool {
        match self {
            Self::Root(_) => CONTINUED.contains(&key),
            Self::Access => ACCESS.contains(&key),
            Self::Named | Self::Settings => false,
        }
    }
}

fn extend(entries: &mut Vec<(YamlNode, YamlNode)>, more: Vec<(YamlNode, YamlNode)>, section: Section<'_>) {
    let places =
        entries.iter().enumerate().filter_map(|(place, (key, _))| Some((key.text()?.to_owned(), place)));
    let places: HashMap<String, usize> = places.collect();
    for (key, value) in more {
        let known = key.text().and_then(|name| Some((*places.get(name)?, name.to_owned())));
        let first = known.and_then(|(place, name)| Some((entries.get_mut(place)?, name)));
        let Some(((_, first), name)) = first else {
            entries.push((key, value));
            continue;
        };
        match (&mut first.content, value.content) {
            (_, Content::Empty) => {}
            (Content::Empty, content) => *first = YamlNode { content, ..value },
            (Content::Map(entries), Content::Map(more)) if !matches!(section, Section::Named) => {
                first.cut |= value.cut;
                extend(entries, more, section.child(&name));
            }
            (Content::List(items), Content::List(more)) if section.continues(&name) => {
                first.cut |= value.cut;
                items.extend(more);
            }
            (_, content) => entries.push((key, YamlNode { content, ..value })),
        }
    }
}
