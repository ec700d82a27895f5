//! Names that look like a given one, for errors.

/// How alike two names must be, from 0 to 1.
const ALIKE: f64 = 0.7;

/// Names that an error offers.
const MOST: usize = 3;

/// At most three of `known` that look like `name`, the likeliest first.
pub(crate) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let likeness =
        |known: &'a str| Some((likeness(known, name), known)).filter(|(likeness, _)| *likeness >= ALIKE);
    let mut near: Vec<(f64, &str)> = known.filter_map(likeness).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect()
}

/// The names in brackets, after what they are; nothing if there are none.
pub(crate) fn or_near(which: &str, near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(" ({which}: {})", near.join(", ")) }
}

/// How alike two names are. Two letters that changed places are one mistake, also in a short name.
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
    use super::near;

    #[test]
    fn two_letters_that_changed_places_are_one_mistake() {
        let names = ["api", "search", "tiger-feeding"];
        for (name, expected) in [
            ("aip", &["api"][..]),
            ("serach", &["search"]),
            ("tiger-fedding", &["tiger-feeding"]),
            ("xyz", &[]),
        ] {
            assert_eq!(near(name, names.into_iter()), expected, "{name}");
        }
    }
}
