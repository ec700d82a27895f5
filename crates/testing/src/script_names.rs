//! The names that scripts give to numbers, for comparisons with those of the program.

use std::collections::BTreeMap;

/// Returns the constants with names in capitals, with the values of all their definitions.
#[must_use]
pub fn definitions(text: &str) -> BTreeMap<&str, Vec<f64>> {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        let Some((names, numbers)) = line.trim().strip_prefix("local ").and_then(|it| it.split_once(" = "))
        else {
            continue;
        };
        for (name, number) in names.split(", ").zip(numbers.split(", ")) {
            let number = number.split(" --").next().unwrap_or_default();
            let is_code = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
            if let (true, Ok(number)) = (is_code, number.parse()) {
                found.entry(name).or_default().push(number);
            }
        }
    }
    found
}

/// Returns the variable names that each `unpack` assigns, in order.
#[must_use]
pub fn lists(text: &str) -> Vec<String> {
    let mut lists = Vec::new();
    let before = text.match_indices("unpack").map(|(at, _)| &text[..at]);
    for before in before {
        let Some((before, "")) =
            before.rsplit_once('=').map(|(names, rest)| (names, rest.trim().trim_end_matches("struct.")))
        else {
            continue;
        };
        let is_of_list = |letter: char| letter.is_alphanumeric() || "_., \n".contains(letter);
        let start = before.rfind(|letter| !is_of_list(letter)).map_or(0, |at| at + 1);
        let names = before[start..].rsplit("local ").next().unwrap_or_default();
        let names = names.split(',').map(|name| name.trim().rsplit('.').next().unwrap_or_default());
        lists.push(names.collect::<Vec<_>>().join(" "));
    }
    lists
}

/// Asserts that a script defines these codes with the same numbers, and none of `unnamed`, the remaining cases.
pub fn assert_codes(text: &str, codes: &[(&str, u64)], unnamed: &[&str]) {
    let defined = definitions(text);
    for (name, number) in codes {
        let there = defined.get(name).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(there.is_empty(), unnamed.contains(name), "{name}");
        assert!(there.iter().all(|there| *there == *number as f64), "{name}: {there:?}, {number}");
    }
}

/// Asserts that a script unpacks the fields of each request in the order in which they are sent.
pub fn assert_lists(text: &str, fields: &[&[&str]]) {
    let read = lists(text);
    for names in fields {
        let names = names.join(" ");
        assert!(read.iter().any(|list| list.contains(&names)), "nothing reads {names}, but {read:#?}");
    }
}
