//! The configured values of one key on one level.

use std::collections::HashMap;

use super::Matcher;
use super::cidr::{Cidr, Cidrs};
use super::glob::{Glob, Globs};
use super::regexes::Regexes;
use super::sibling::SiblingIndex;

/// The descriptors of one key, by the values they are for.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// By text, also that of patterns: a request that says exactly what the file says means that descriptor.
    pub(super) exact: HashMap<Box<str>, SiblingIndex>,
    globs: Option<Globs<SiblingIndex>>,
    cidrs: Option<Cidrs>,
    regexes: Option<Regexes>,
    pub(super) any: Option<SiblingIndex>,
}

impl Values {
    /// A table of `matchers`, in the order of the file. Of two equal ones the first counts.
    pub(super) fn new<'a>(matchers: impl IntoIterator<Item = (&'a Matcher, SiblingIndex)>) -> Self {
        let mut values = Self::default();
        let mut globs: Vec<(Glob, SiblingIndex)> = Vec::new();
        let mut cidrs: Vec<(Cidr, SiblingIndex)> = Vec::new();
        let mut regexes: Vec<(String, SiblingIndex)> = Vec::new();
        for (matcher, place) in matchers {
            match matcher {
                Matcher::Any => {
                    values.any.get_or_insert(place);
                }
                Matcher::Exact(text) => {
                    values.exact.entry(text.as_str().into()).or_insert(place);
                }
                Matcher::Glob(glob) => {
                    values.exact.entry(glob.to_string().into()).or_insert(place);
                    globs.push((glob.clone(), place));
                }
                Matcher::Cidr(networks) => cidrs.extend(networks.iter().map(|cidr| (*cidr, place))),
                Matcher::Regex(text) => regexes.push((text.clone(), place)),
            }
        }
        values.globs = (!globs.is_empty()).then(|| Globs::new(globs));
        values.cidrs = (!cidrs.is_empty()).then(|| Cidrs::new(cidrs));
        values.regexes = (!regexes.is_empty()).then(|| Regexes::new(&regexes));
        values
    }

    /// A table of the texts of `matchers`, and of nothing that they match besides.
    pub(super) fn texts<'a>(matchers: impl IntoIterator<Item = (&'a Matcher, SiblingIndex)>) -> Self {
        let mut values = Self::default();
        for (matcher, place) in matchers {
            if matches!(matcher, Matcher::Exact(_) | Matcher::Glob(_)) {
                values.exact.entry(matcher.text().into()).or_insert(place);
            }
        }
        values
    }

    /// The first pattern in the file that matches `value`.
    pub(super) fn pattern(&self, value: &str) -> Option<SiblingIndex> {
        let glob = |globs: &Globs<SiblingIndex>| {
            globs.matches(value).filter_map(|mut group| group.next().copied()).min()
        };
        let globs = self.globs.as_ref().and_then(glob);
        let cidrs = self.cidrs.as_ref().and_then(|cidrs| cidrs.first(value));
        let regexes = self.regexes.as_ref().and_then(|regexes| regexes.first(value));
        [globs, cidrs, regexes].into_iter().flatten().min()
    }

    /// The first in the file, of whatever sort, that matches `value`.
    pub(super) fn first(&self, value: &str) -> Option<SiblingIndex> {
        let exact = self.exact.get(value).copied();
        [exact, self.pattern(value), self.any].into_iter().flatten().min()
    }
}
