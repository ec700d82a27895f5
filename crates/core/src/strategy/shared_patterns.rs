//! Values by pattern in maps that share structure: a change copies O(log n) nodes, and copies of the table before stay as
//! they were. A lookup costs more than one of [`Patterns`](super::Patterns), which cannot change.

use std::collections::BTreeMap;
use std::sync::Arc;

use rpds::HashTrieMapSync;

use super::Pattern;

/// Names are of operators and not of callers, so the hash need not resist chosen names.
type SharedNames<T> = HashTrieMapSync<Box<str>, T, foldhash::fast::FixedState>;

/// Values by pattern: exact names, and prefixes that end in `*`. A clone costs nothing.
#[derive(Debug)]
pub(super) struct SharedPatterns<T> {
    exact: SharedNames<T>,
    prefixes: SharedNames<T>,
    lengths: Arc<BTreeMap<usize, usize>>,
}

impl<T> SharedPatterns<T> {
    /// Sets the value of a pattern. Returns whether the pattern is new.
    pub(super) fn insert(&mut self, pattern: &str, value: T) -> bool {
        let Some(text) = pattern.strip_suffix('*') else {
            let is_new = !self.exact.contains_key(pattern);
            self.exact.insert_mut(pattern.into(), value);
            return is_new;
        };
        let is_new = !self.prefixes.contains_key(text);
        self.prefixes.insert_mut(text.into(), value);
        if is_new {
            *Arc::make_mut(&mut self.lengths).entry(text.len()).or_default() += 1;
        }
        is_new
    }

    /// Removes a pattern. Returns whether it was there.
    pub(super) fn remove(&mut self, pattern: &str) -> bool {
        let Some(text) = pattern.strip_suffix('*') else { return self.exact.remove_mut(pattern) };
        if !self.prefixes.remove_mut(text) {
            return false;
        }
        let lengths = Arc::make_mut(&mut self.lengths);
        let left = lengths.get(&text.len()).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            lengths.remove(&text.len());
        } else {
            lengths.insert(text.len(), left);
        }
        true
    }

    /// The value of this very pattern.
    pub(super) fn get(&self, pattern: &str) -> Option<&T> {
        match pattern.strip_suffix('*') {
            Some(text) => self.prefixes.get(text),
            None => self.exact.get(pattern),
        }
    }

    /// All values that match `name`: exact, then from the longest prefix to the shortest.
    pub(super) fn matches<'a>(&'a self, name: &str) -> impl Iterator<Item = (Pattern<'a>, &'a T)> {
        let exact = if self.exact.is_empty() { None } else { self.exact.get_key_value(name) };
        let exact = exact.map(|(text, value)| (Pattern::exact(text), value));
        let prefixes = self.lengths.range(..=name.len()).rev().filter_map(move |(length, _)| {
            let (text, value) = self.prefixes.get_key_value(name.get(..*length)?)?;
            Some((Pattern::prefix(text), value))
        });
        exact.into_iter().chain(prefixes)
    }

    /// The value for `name`, if any pattern matches it: exact, else the longest prefix.
    pub(super) fn find(&self, name: &str) -> Option<(Pattern<'_>, &T)> {
        self.matches(name).next()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Pattern<'_>, &T)> {
        let exact = self.exact.iter().map(|(text, value)| (Pattern::exact(text), value));
        exact.chain(self.prefixes.iter().map(|(text, value)| (Pattern::prefix(text), value)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty()
    }
}

impl<T> Clone for SharedPatterns<T> {
    fn clone(&self) -> Self {
        let Self { exact, prefixes, lengths } = self;
        Self { exact: exact.clone(), prefixes: prefixes.clone(), lengths: Arc::clone(lengths) }
    }
}

impl<T> Default for SharedPatterns<T> {
    fn default() -> Self {
        Self { exact: SharedNames::default(), prefixes: SharedNames::default(), lengths: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Patterns;

    /// The table finds the same as [`Patterns`], and a copy from before a change still finds the same.
    #[test]
    fn it_agrees_with_the_table_that_cannot_change() {
        let names = ["", "a", "ab", "abc", "abd", "b", "é", "éa", "a*"];
        let patterns = ["*", "a", "a*", "ab*", "abc", "b*", "é*", "é", "abcd*", ""];
        let (mut shared, mut there) = (SharedPatterns::default(), Vec::<(String, usize)>::new());
        let mut number = 1_u64;
        for step in 0..2_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pattern = patterns[(number >> 33) as usize % patterns.len()];
            let before = shared.clone();
            let found_before: Vec<_> = names.map(|name| before.find(name).map(|(_, at)| *at)).into();
            let known = there.iter().position(|(own, _)| own == pattern);
            if number >> 62 == 0 {
                assert_eq!(shared.remove(pattern), known.is_some());
                known.map(|place| there.remove(place));
            } else {
                assert_eq!(shared.insert(pattern, step), known.is_none());
                known.map(|place| there.remove(place));
                there.push((pattern.to_owned(), step));
            }
            assert_eq!(before.find("abc").map(|(_, at)| *at), found_before[3]);
            let fixed = Patterns::new(there.clone());
            for (name, was) in names.iter().zip(found_before) {
                let all = |found: Vec<(String, usize)>| found;
                let own = shared.matches(name).map(|(pattern, at)| (pattern.to_string(), *at)).collect();
                let others = fixed.matches(name).map(|(pattern, at)| (pattern.to_string(), *at)).collect();
                assert_eq!(all(own), all(others), "{name} in {there:?}");
                assert_eq!(before.find(name).map(|(_, at)| *at), was);
            }
            assert_eq!(shared.is_empty(), there.is_empty());
            assert_eq!(
                shared.get(pattern).copied(),
                there.iter().find(|(own, _)| own == pattern).map(|it| it.1)
            );
            assert_eq!(shared.iter().count(), there.len());
        }
    }
}
