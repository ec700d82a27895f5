//! The configured values of one key on one level.

use std::sync::Arc;

use super::Matcher;
use super::cidr::{Cidr, Cidrs};
use super::glob::{Glob, Globs};
use super::regexes::Regexes;
use super::sibling::SiblingIndex;
use super::texts::Texts;

/// The descriptors of one key, by the values they are for.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// By text, also that of patterns: a request that says exactly what the file says means that descriptor.
    pub(super) exact: Texts<SiblingIndex>,
    patterns: Option<Box<ValuePatterns>>,
    pub(super) any: Option<SiblingIndex>,
}

/// The descriptors of one key that match more than one value.
#[derive(Debug)]
struct ValuePatterns {
    globs: Option<Globs<SiblingIndex>>,
    cidrs: Option<Cidrs>,
    regexes: Option<Regexes>,
}

impl Values {
    /// A table of `matchers`, in the order of the file. Of two equal ones the first counts.
    pub(super) fn new<'a>(matchers: impl IntoIterator<Item = (&'a Matcher, SiblingIndex)>) -> Self {
        let mut values = Self::default();
        let mut exact: Vec<(Arc<str>, SiblingIndex)> = Vec::new();
        let mut globs: Vec<(Glob, SiblingIndex)> = Vec::new();
        let mut cidrs: Vec<(Cidr, SiblingIndex)> = Vec::new();
        let mut regexes: Vec<(String, SiblingIndex)> = Vec::new();
        for (matcher, place) in matchers {
            match matcher {
                Matcher::Any => {
                    values.any.get_or_insert(place);
                }
                Matcher::Exact(text) => exact.push((Arc::clone(text), place)),
                Matcher::Glob(glob) => {
                    exact.push((glob.to_string().into(), place));
                    globs.push((Glob::clone(glob), place));
                }
                Matcher::Cidr(networks) => cidrs.extend(networks.iter().map(|cidr| (*cidr, place))),
                Matcher::Regex(text) => regexes.push((text.clone(), place)),
            }
        }
        values.exact = exact.into_iter().collect();
        let patterns = ValuePatterns {
            globs: (!globs.is_empty()).then(|| Globs::new(globs)),
            cidrs: (!cidrs.is_empty()).then(|| Cidrs::new(cidrs)),
            regexes: (!regexes.is_empty()).then(|| Regexes::new(&regexes)),
        };
        let has_some = patterns.globs.is_some() || patterns.cidrs.is_some() || patterns.regexes.is_some();
        values.patterns = has_some.then(|| Box::new(patterns));
        values
    }

    /// A table of the texts of `matchers`, and of nothing that they match besides.
    pub(super) fn texts<'a>(matchers: impl IntoIterator<Item = (&'a Matcher, SiblingIndex)>) -> Self {
        let with_text =
            |(matcher, _): &(&Matcher, SiblingIndex)| matches!(matcher, Matcher::Exact(_) | Matcher::Glob(_));
        let texts = matchers.into_iter().filter(with_text);
        let exact = texts.map(|(matcher, place)| (matcher.text().into(), place)).collect();
        Self { exact, ..Self::default() }
    }

    /// The first pattern in the file that matches `value`.
    #[inline]
    pub(super) fn pattern(&self, value: &str) -> Option<SiblingIndex> {
        self.patterns.as_deref()?.first(value)
    }

    /// The first in the file, of whatever sort, that matches `value`.
    pub(super) fn first(&self, value: &str) -> Option<SiblingIndex> {
        let exact = self.exact.get(value).copied();
        [exact, self.pattern(value), self.any].into_iter().flatten().min()
    }
}

impl ValuePatterns {
    fn first(&self, value: &str) -> Option<SiblingIndex> {
        let Self { globs, cidrs, regexes } = self;
        let glob = |globs: &Globs<SiblingIndex>| {
            globs.matches(value).filter_map(|mut group| group.next().copied()).min()
        };
        let globs = globs.as_ref().and_then(glob);
        let cidrs = cidrs.as_ref().and_then(|cidrs| cidrs.first(value));
        let regexes = regexes.as_ref().and_then(|regexes| regexes.first(value));
        [globs, cidrs, regexes].into_iter().flatten().min()
    }
}
