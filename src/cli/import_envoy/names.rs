//! Derives valid unique names from arbitrary texts.

use std::collections::HashSet;

/// Maximum length of the names of strategies, and of attributes, in bytes.
const MAX_NAME: usize = 128;
const MAX_ATTRIBUTE: usize = 64;

/// The names in use.
#[derive(Debug, Default)]
pub(super) struct GivenNames(HashSet<String>);

impl GivenNames {
    /// Derives the name of a strategy from `text`.
    pub(super) fn strategy(&mut self, text: &str) -> String {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
        self.once(text.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect(), MAX_NAME)
    }

    /// Derives the name of an attribute from `text`.
    pub(super) fn attribute(&mut self, text: &str) -> String {
        let plain =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
        let lower = text.chars().map(|letter| letter.to_ascii_lowercase());
        let name: String = lower.map(|letter| if plain(letter) { letter } else { '_' }).collect();
        // The configuration rejects attributes whose names are similar to a field.
        let like_a_field =
            ["resource", "consumer"].iter().any(|field| strsim::levenshtein(field, &name) <= 2);
        let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
        self.once(if begins && !like_a_field { name } else { format!("entry_{name}") }, MAX_ATTRIBUTE)
    }

    /// Returns `name`, with a number appended if it is in use. It must be ASCII.
    fn once(&mut self, mut name: String, longest: usize) -> String {
        const NUMBER: usize = 8;
        name.truncate(longest);
        if self.0.insert(name.clone()) {
            return name;
        }
        name.truncate(longest - NUMBER);
        let numbered = (2_usize..).map(|number| format!("{name}-{number}"));
        let free = numbered.into_iter().find(|name| !self.0.contains(name)).unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}
