//! Texts that a value may begin with (or, backwards, end with), and finding all that it does.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A table of beginnings (`BACK`: of endings). The entries are sorted, and each knows the longest other
/// one that it begins with itself, so that finding is a binary search and a climb.
#[derive(Debug)]
pub(super) struct Affixes<const BACK: bool, T>(Vec<Affix<T>>);

#[derive(Debug)]
struct Affix<T> {
    /// As it is read: backwards, if `BACK`.
    text: Box<[u8]>,
    parent: Option<usize>,
    value: T,
}

impl<const BACK: bool, T> Default for Affixes<BACK, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<const BACK: bool, T> Affixes<BACK, T> {
    /// A table of `items`; `group` makes one value of those whose text is the same.
    pub(super) fn new<I>(items: impl IntoIterator<Item = (String, I)>, group: impl Fn(Vec<I>) -> T) -> Self {
        let mut sorted: BTreeMap<Box<[u8]>, Vec<I>> = BTreeMap::new();
        for (text, item) in items {
            let mut text = text.into_bytes();
            if BACK {
                text.reverse();
            }
            sorted.entry(text.into()).or_default().push(item);
        }
        let mut table = Self(Vec::with_capacity(sorted.len()));
        for (text, items) in sorted {
            let parent = table.longest(table.0.len().checked_sub(1), |affix| text.starts_with(affix));
            table.0.push(Affix { text, parent, value: group(items) });
        }
        table
    }

    /// The values of all that `text` begins with (ends with), the longest first.
    pub(super) fn matches(&self, text: &str) -> impl Iterator<Item = &T> {
        let text = text.as_bytes();
        let last = self.0.partition_point(|affix| read::<BACK>(&affix.text, text) != Ordering::Greater);
        let longest = self.longest(last.checked_sub(1), |affix| match BACK {
            true => affix.len() <= text.len() && affix.iter().eq(text.iter().rev().take(affix.len())),
            false => text.starts_with(affix),
        });
        let affix = |index: usize| self.0.get(index);
        std::iter::successors(longest.and_then(affix), move |affix| self.0.get(affix.parent?))
            .map(|affix| &affix.value)
    }

    /// Climbs from `start` to the first that `fits`. All that fit and sort before it are its ancestors or
    /// itself, so this is the longest.
    fn longest(&self, start: Option<usize>, fits: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let mut at = start;
        while let Some(affix) = at.and_then(|index| self.0.get(index)) {
            if fits(&affix.text) {
                return at;
            }
            at = affix.parent;
        }
        None
    }
}

/// Order of an affix and a text.
fn read<const BACK: bool>(affix: &[u8], text: &[u8]) -> Ordering {
    if BACK { affix.iter().cmp(text.iter().rev()) } else { affix.cmp(text) }
}
