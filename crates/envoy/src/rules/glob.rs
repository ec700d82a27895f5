//! Patterns with `*`, each of which stands for any text, also none; and finding the one that matches.

use std::fmt;

use super::affixes::Affixes;

/// A pattern with at least one `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
    /// Text before the first `*`.
    prefix: Box<str>,
    /// Text after the last `*`.
    suffix: Box<str>,
    /// Texts between two `*`, in order.
    between: Box<[Box<str>]>,
}

impl Glob {
    /// Parses a pattern; `None` if `text` has no `*`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('*')?;
        let (between, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        let between = between.split('*').filter(|piece| !piece.is_empty()).map(Into::into).collect();
        Some(Self { text: text.into(), prefix: prefix.into(), suffix: suffix.into(), between })
    }

    /// True if the whole `value` matches.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        let rest = value.strip_prefix(&*self.prefix);
        let Some(mut rest) = rest.and_then(|rest| rest.strip_suffix(&*self.suffix)) else { return false };
        // Taking each piece where it is first found leaves most for those that follow.
        for piece in &self.between {
            match rest.split_once(&**piece) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
        true
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Many patterns with what belongs to each. They are found by how they begin and then by how they end, so
/// that only those which agree in both are tried one by one.
#[derive(Debug)]
pub(super) struct Globs<T>(Affixes<false, Affixes<true, Vec<(Glob, T)>>>);

impl<T> Default for Globs<T> {
    fn default() -> Self {
        Self(Affixes::default())
    }
}

impl<T> Globs<T> {
    /// A table of `globs`.
    pub(super) fn new(globs: Vec<(Glob, T)>) -> Self {
        let by_prefix = globs.into_iter().map(|(glob, value)| (glob.prefix.to_string(), (glob, value)));
        Self(Affixes::new(by_prefix, |same_prefix| {
            let by_suffix =
                same_prefix.into_iter().map(|(glob, value)| (glob.suffix.to_string(), (glob, value)));
            Affixes::new(by_suffix, |same_both| same_both)
        }))
    }

    /// For each group of patterns that begin and end alike, those that match `value`, in the order they
    /// were given. The groups are in no order.
    pub(super) fn matches(&self, value: &str) -> impl Iterator<Item = impl Iterator<Item = &T>> {
        let groups = self.0.matches(value).flat_map(move |suffixes| suffixes.matches(value));
        groups.map(move |group| {
            group.iter().filter(move |(glob, _)| glob.matches(value)).map(|(_, value)| value)
        })
    }
}
