//! A table by text, small where few texts are: most levels of a control plane's tree have one key with one value.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// The most texts that are compared one by one.
const FEW: usize = 8;

/// Values by their texts.
#[derive(Debug)]
pub(super) enum Texts<V> {
    /// Compared in order.
    Few(Box<[(Arc<str>, V)]>),
    /// Found by their hash.
    Many(Box<HashedTexts<V>>),
}

/// The table of many texts. Only files add to it, so no caller can make texts collide.
#[derive(Debug)]
pub(super) struct HashedTexts<V>(HashMap<Arc<str>, V, RandomState>);

impl<V> Default for Texts<V> {
    fn default() -> Self {
        Self::Few(Box::default())
    }
}

impl<V> Texts<V> {
    /// The value of `text`.
    pub(super) fn get(&self, text: &str) -> Option<&V> {
        match self {
            Self::Few(all) => all.iter().find(|(known, _)| **known == *text).map(|(_, value)| value),
            Self::Many(all) => all.0.get(text),
        }
    }
}

impl<V> FromIterator<(Arc<str>, V)> for Texts<V> {
    /// Of two equal texts the first counts.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, V)>>(items: I) -> Self {
        let mut items = items.into_iter();
        let mut few: Vec<(Arc<str>, V)> = Vec::new();
        for (text, value) in items.by_ref() {
            if few.iter().any(|(known, _)| *known == text) {
                continue;
            }
            few.push((text, value));
            if few.len() > FEW {
                let mut many: HashMap<Arc<str>, V, RandomState> = few.into_iter().collect();
                for (text, value) in items {
                    many.entry(text).or_insert(value);
                }
                many.shrink_to_fit();
                return Self::Many(Box::new(HashedTexts(many)));
            }
        }
        Self::Few(few.into_boxed_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_texts_counts_in_both_forms() {
        for count in [0, 1, FEW, FEW + 1, 100] {
            let numbered = (0..count).chain(0..count).enumerate();
            let texts: Texts<usize> =
                numbered.map(|(place, number)| (Arc::from(number.to_string()), place)).collect();
            assert_eq!(matches!(texts, Texts::Many(_)), count > FEW);
            for number in 0..count {
                assert_eq!(texts.get(&number.to_string()), Some(&number));
            }
            assert_eq!(texts.get("none"), None);
        }
    }
}
