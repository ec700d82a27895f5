//! Names and patterns of names: exact, or everything that begins with what stands before a final `*`.

use std::collections::HashMap;
use std::fmt;

/// A table of configured names. Callers only look up names and never insert them, so its hash need not resist chosen
/// names.
pub(super) type NameTable<T> = HashMap<Box<str>, T, foldhash::fast::RandomState>;

/// Values by pattern: exact names, and prefixes that end in `*`.
///
/// Looking a name up costs a hash and a binary search, however many patterns there are: the prefixes
/// are sorted, and each knows the longest other prefix that it starts with.
#[derive(Debug, Clone)]
pub struct Patterns<T> {
    exact: NameTable<(usize, T)>,
    prefixes: Vec<Prefix<T>>,
}

#[derive(Debug, Clone)]
struct Prefix<T> {
    text: Box<str>,
    /// The longest other prefix that this one starts with.
    parent: Option<usize>,
    place: usize,
    value: T,
}

/// A pattern as it was configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern<'a> {
    /// The name, or the prefix.
    text: &'a str,
    is_prefix: bool,
    place: usize,
}

impl<T> Patterns<T> {
    /// A table of `patterns`. Of two equal patterns the first applies; the configuration refuses them.
    pub fn new(patterns: impl IntoIterator<Item = (String, T)>) -> Self {
        let mut exact = NameTable::default();
        let mut prefixes: Vec<Prefix<T>> = Vec::new();
        for (place, (pattern, value)) in patterns.into_iter().enumerate() {
            match pattern.strip_suffix('*') {
                Some(text) => prefixes.push(Prefix { text: text.into(), parent: None, place, value }),
                None => {
                    exact.entry(pattern.into()).or_insert((place, value));
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

    /// The value for `name`, if any pattern matches it: exact, else the longest prefix.
    pub fn find(&self, name: &str) -> Option<(Pattern<'_>, &T)> {
        if self.is_empty() {
            return None;
        }
        self.matches(name).next()
    }

    /// All values that match `name`: exact, then from the longest prefix to the shortest.
    pub fn matches<'a>(&'a self, name: &str) -> impl Iterator<Item = (Pattern<'a>, &'a T)> {
        let exact = self.exact.get_key_value(name);
        let exact =
            exact.map(|(text, (place, value))| (Pattern { text, is_prefix: false, place: *place }, value));
        let last = self.prefixes.partition_point(|prefix| *prefix.text <= *name).checked_sub(1);
        let first = longest(&self.prefixes, last, name).and_then(|index| self.prefixes.get(index));
        let parent = |prefix: &&'a Prefix<T>| self.prefixes.get(prefix.parent?);
        let prefixes = std::iter::successors(first, parent);
        let prefixes = prefixes.map(Prefix::entry);
        exact.into_iter().chain(prefixes)
    }

    /// All values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().map(|(_, value)| value).chain(self.prefixes.iter().map(|prefix| &prefix.value))
    }

    /// All patterns with their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Pattern<'_>, &T)> {
        let exact = self.exact.iter();
        let exact =
            exact.map(|(text, (place, value))| (Pattern { text, is_prefix: false, place: *place }, value));
        exact.chain(self.prefixes.iter().map(Prefix::entry))
    }

    /// Number of patterns.
    pub fn len(&self) -> usize {
        self.exact.len() + self.prefixes.len()
    }

    /// True if there is no pattern.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }
}

impl<T> Prefix<T> {
    fn entry(&self) -> (Pattern<'_>, &T) {
        (Pattern { text: &self.text, is_prefix: true, place: self.place }, &self.value)
    }
}

impl<'a> Pattern<'a> {
    /// The pattern of one name, outside of any order.
    pub(super) const fn exact(text: &'a str) -> Self {
        Self { text, is_prefix: false, place: 0 }
    }

    /// The pattern of all names that begin with `text`, outside of any order.
    pub(super) const fn prefix(text: &'a str) -> Self {
        Self { text, is_prefix: true, place: 0 }
    }

    /// Index among all that were configured together, from 0.
    pub const fn place(&self) -> usize {
        self.place
    }
}

impl<T> Default for Patterns<T> {
    fn default() -> Self {
        Self { exact: NameTable::default(), prefixes: Vec::new() }
    }
}

impl fmt::Display for Pattern<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        f.write_str(if self.is_prefix { "*" } else { "" })
    }
}

/// Climbs from `start` to the first prefix that `name` starts with. Every prefix of `name` that sorts
/// before it is an ancestor of its neighbour, so climbing finds the longest.
fn longest<T>(prefixes: &[Prefix<T>], start: Option<usize>, name: &str) -> Option<usize> {
    let mut at = start;
    while let Some(prefix) = at.and_then(|index| prefixes.get(index)) {
        if name.starts_with(&*prefix.text) {
            return at;
        }
        at = prefix.parent;
    }
    None
}
