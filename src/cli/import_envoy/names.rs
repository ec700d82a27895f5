//! Names that Weir accepts, made of texts that may be anything, each given once.

use std::collections::HashSet;

/// The longest name of a strategy, and of an attribute, in bytes.
const MAX_NAME: usize = 128;
const MAX_ATTRIBUTE: usize = 64;

/// Names that have been given.
#[derive(Debug, Default)]
pub(super) struct GivenNames(HashSet<String>);

impl GivenNames {
    /// The name of a strategy, as like `text` as it can be.
    pub(super) fn strategy(&mut self, text: &str) -> String {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
        self.once(text.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect(), MAX_NAME)
    }

    /// The name of an attribute, as like `text` as it can be.
    pub(super) fn attribute(&mut self, text: &str) -> String {
        let plain =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
        let lower = text.chars().map(|letter| letter.to_ascii_lowercase());
        let name: String = lower.map(|letter| if plain(letter) { letter } else { '_' }).collect();
        // The configuration refuses attributes that are easily taken for a field.
        let like_a_field =
            ["resource", "consumer"].iter().any(|field| strsim::levenshtein(field, &name) <= 2);
        let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
        self.once(if begins && !like_a_field { name } else { format!("entry_{name}") }, MAX_ATTRIBUTE)
    }

    /// `name`, or with a number behind it if that was given before. All its letters are ASCII.
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
