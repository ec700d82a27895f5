//! One level of a domain: siblings, and finding the one for an entry.

use std::collections::HashMap;
use std::sync::Arc;

use super::glob::{Glob, Globs};
use super::rule::RuleEntry;
use super::sibling::SiblingIndex;
use super::texts::Texts;
use super::values::Values;
use super::{Descriptor, Matcher, Rule};

/// The descriptors of one level.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// In the order of the file.
    nodes: Box<[Node]>,
    /// Keys without `*` with all their values; keys with `*` with the texts of their values, for requests that say
    /// exactly what the file says.
    keys: Texts<Values>,
    /// Keys with `*`.
    key_patterns: Option<Box<Globs<Values>>>,
}

/// One descriptor.
#[derive(Debug)]
pub(super) struct Node {
    /// The descriptor as an entry of its rules.
    pub(super) entry: Arc<RuleEntry>,
    pub(super) rule: Option<Arc<Rule>>,
    pub(super) next: Level,
}

/// Reason for the choice of a descriptor among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The entry's own key and value as text, even where that text is also a pattern.
    Exact,
    /// The first pattern of the file that matches.
    Pattern,
    /// The descriptor for any value of the key, where nothing else matches.
    Default,
}

/// One level on the way of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// `key` or `key_value` of what was chosen, as it is configured.
    pub path: &'a str,
    /// Reason for the choice.
    pub how: How,
    /// True if it has a rule, which applies if nothing follows.
    pub has_rule: bool,
}

impl Level {
    /// The level of `descriptors`, whose nodes are `nodes`, in the same order.
    pub(super) fn new(descriptors: &[Descriptor], nodes: Vec<Node>) -> Self {
        let mut keys: HashMap<&Arc<str>, Vec<(&Matcher, SiblingIndex)>> = HashMap::new();
        for (place, descriptor) in descriptors.iter().enumerate() {
            keys.entry(&descriptor.key).or_default().push((&descriptor.matcher, place));
        }
        let (mut texts, mut patterns) = (Vec::new(), Vec::new());
        for (key, matchers) in keys {
            match Glob::new(key) {
                Some(glob) => {
                    texts.push((Arc::clone(key), Values::texts(matchers.iter().copied())));
                    patterns.push((glob, Values::new(matchers)));
                }
                None => texts.push((Arc::clone(key), Values::new(matchers))),
            }
        }
        let key_patterns = (!patterns.is_empty()).then(|| Box::new(Globs::new(patterns)));
        Self { nodes: nodes.into(), keys: texts.into_iter().collect(), key_patterns }
    }

    /// `key` or `key_value` of each, in the order of the file.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| &*node.entry.path)
    }

    /// The descriptor for an entry.
    pub(super) fn find(&self, key: &str, value: &str) -> Option<(How, &Node)> {
        let own = self.keys.get(key);
        let (how, place) = match own.and_then(|values| values.exact.get(value)) {
            Some(&place) => (How::Exact, place),
            None => match self.pattern(own, key, value) {
                Some(place) => (How::Pattern, place),
                None => (How::Default, own?.any?),
            },
        };
        Some((how, self.nodes.get(place)?))
    }

    /// The first pattern in the file, of the key's own or of a pattern of keys.
    fn pattern(&self, own: Option<&Values>, key: &str, value: &str) -> Option<SiblingIndex> {
        let own = own.and_then(|values| values.pattern(value));
        let Some(patterns) = &self.key_patterns else { return own };
        let others = patterns.matches(key).flatten().filter_map(|values| values.first(value)).min();
        match (own, others) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        }
    }
}
