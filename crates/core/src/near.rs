//! Names that look like a given one, for errors.

use std::sync::Arc;

/// Least likeness of two names, from 0 to 1.
const ALIKE: f64 = 0.7;

/// Names that an error offers.
const MOST: usize = 3;

/// Names that are compared with an unknown one, about half a microsecond each.
const MOST_COMPARED: usize = 32;

/// Most names of one length.
const MOST_OF_A_LENGTH: usize = 12;

/// Names among which those that look like another one are found, in a time that does not depend on their number. Clones
/// share them.
#[derive(Debug, Clone, Default)]
pub struct KnownNames(Arc<[Box<str>]>);

impl<'a> FromIterator<&'a str> for KnownNames {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut names: Vec<Box<str>> = names.into_iter().map(Into::into).collect();
        // Few names are all compared, and those that are alike are named in their order.
        if names.len() > MOST_COMPARED {
            names.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        }
        Self(names.into())
    }
}

impl KnownNames {
    /// At most three that look like `name`, the likeliest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        let compared = self.candidates(name).into_iter();
        let compared = compared.map(|known| (likeness(known, name), known));
        let mut near: Vec<(f64, &str)> = compared.filter(|(likeness, _)| *likeness >= ALIKE).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect()
    }

    /// All names, if they are few. Otherwise those of like length that stand beside `name` in the order of the alphabet: they
    /// begin as it does.
    fn candidates(&self, name: &str) -> Vec<&str> {
        if self.0.len() <= MOST_COMPARED {
            return self.0.iter().map(|known| &**known).collect();
        }
        let (length, mut found) = (name.len(), Vec::with_capacity(MOST_COMPARED));
        for apart in 0..=length.max(MOST_COMPARED) {
            let lengths = [length.checked_sub(apart), Some(length + apart).filter(|_| apart > 0)];
            for length in lengths.into_iter().flatten() {
                let room = (MOST_COMPARED - found.len()).min(MOST_OF_A_LENGTH);
                found.extend(self.beside(name, length, room));
            }
            if found.len() == MOST_COMPARED {
                break;
            }
        }
        found
    }

    /// At most `most` names of this length, those beside `name`.
    fn beside(&self, name: &str, length: usize, most: usize) -> impl Iterator<Item = &str> {
        let first = self.0.partition_point(|known| known.len() < length);
        let end = self.0.partition_point(|known| known.len() <= length);
        let of_length = self.0.get(first..end).unwrap_or_default();
        let place = of_length.partition_point(|known| **known < *name);
        let begin = place.saturating_sub(most / 2).min(of_length.len().saturating_sub(most));
        of_length.iter().skip(begin).take(most).map(|known| &**known)
    }
}

/// The names in brackets, after what they are; nothing if there are none.
pub(crate) fn or_near(which: &str, near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(" ({which}: {})", near.join(", ")) }
}

/// Returns the likeness of two names. Two letters that changed places are one mistake, also in a short name.
fn likeness(one: &str, other: &str) -> f64 {
    const SHORT: usize = 8;
    let are_short = one.len() <= SHORT && one.len().abs_diff(other.len()) <= 1;
    if are_short && strsim::damerau_levenshtein(one, other) == 1 {
        return 0.95;
    }
    strsim::jaro_winkler(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_letters_that_changed_places_are_one_mistake() {
        let names = ["api", "search", "tiger-feeding"];
        for (name, expected) in [
            ("aip", &["api"][..]),
            ("serach", &["search"]),
            ("tiger-fedding", &["tiger-feeding"]),
            ("xyz", &[]),
        ] {
            let known: KnownNames = names.into_iter().collect();
            assert_eq!(known.near(name), expected, "{name}");
        }
    }

    /// A caller with wrong names made a worker compare each of them with all names of the configuration.
    #[test]
    fn few_of_many_names_are_compared() {
        let names: Vec<String> = (0..10_000).map(|number| format!("strategy-{number:05}")).collect();
        let known: KnownNames = names.iter().map(String::as_str).chain(["login"]).collect();
        for (name, expected) in [
            ("strategy-09999x", Some("strategy-09999")),
            ("strategy-0042", Some("strategy-00421")),
            ("strategy-77a77", Some("strategy-77777")),
            ("lgoin", Some("login")),
            ("zzzzzzzz", None),
            ("", None),
            (&"x".repeat(500), None),
        ] {
            let compared = known.candidates(name);
            assert!(compared.len() <= MOST_COMPARED, "{name}: {}", compared.len());
            let near = known.near(name);
            let has = |expected: &str| near.iter().any(|near| near == expected);
            assert!(
                expected.map_or(near.is_empty(), |expected| has(expected) || !near.is_empty()),
                "{name}: {near:?}"
            );
            assert!(expected != Some("login") || has("login"), "{near:?}");
        }
        assert_eq!(known.near("strategy-09999x")[0], "strategy-09999");
    }
}
