//! Which strategy a resource has when the caller names none: exact, else the longest prefix.

use std::collections::HashMap;

/// What the configuration says of the resources that one pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Index of the strategy in [`super::Rules`].
    pub strategy: usize,
    /// Resources of one routing group share a shard.
    pub group: Option<Box<str>>,
}

/// Patterns, exact or ending in `*`.
///
/// Looking a name up costs a hash and a binary search, however many patterns there are: the prefixes
/// are sorted, and each knows the longest other prefix that it starts with.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    exact: HashMap<Box<str>, Resource>,
    prefixes: Vec<Prefix>,
}

#[derive(Debug, Clone)]
struct Prefix {
    text: Box<str>,
    /// The longest other prefix that this one starts with.
    parent: Option<usize>,
    resource: Resource,
}

impl Resources {
    /// A table of `patterns`. Of two equal patterns the first counts; the configuration refuses them.
    #[must_use]
    pub fn new(patterns: impl IntoIterator<Item = (String, Resource)>) -> Self {
        let mut exact = HashMap::new();
        let mut prefixes: Vec<Prefix> = Vec::new();
        for (pattern, resource) in patterns {
            match pattern.strip_suffix('*') {
                Some(text) => prefixes.push(Prefix { text: text.into(), parent: None, resource }),
                None => {
                    exact.entry(pattern.into()).or_insert(resource);
                }
            }
        }
        prefixes.sort_by(|a, b| a.text.cmp(&b.text));
        prefixes.dedup_by(|later, earlier| later.text == earlier.text);
        for index in 1..prefixes.len() {
            let (before, rest) = prefixes.split_at_mut(index);
            if let Some(prefix) = rest.first_mut() {
                prefix.parent = longest(before, Some(index - 1), &prefix.text);
            }
        }
        Self { exact, prefixes }
    }

    /// What is configured for `name`, if any pattern matches it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Resource> {
        if let Some(resource) = self.exact.get(name) {
            return Some(resource);
        }
        let last = self.prefixes.partition_point(|prefix| *prefix.text <= *name).checked_sub(1);
        longest(&self.prefixes, last, name).and_then(|index| self.prefixes.get(index)).map(|p| &p.resource)
    }

    /// How many patterns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exact.len() + self.prefixes.len()
    }

    /// Whether there is no pattern at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }
}

/// Climbs from `start` to the first prefix that `name` starts with. Every prefix of `name` that sorts
/// before it is an ancestor of its neighbour, so climbing finds the longest.
fn longest(prefixes: &[Prefix], start: Option<usize>, name: &str) -> Option<usize> {
    let mut at = start;
    while let Some(prefix) = at.and_then(|index| prefixes.get(index)) {
        if name.starts_with(&*prefix.text) {
            return at;
        }
        at = prefix.parent;
    }
    None
}
