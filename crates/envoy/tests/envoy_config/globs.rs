//! Patterns found by an index and patterns tried one by one give the same answer.

use proptest::prelude::*;
use weir_envoy::rules::{Descriptor, Glob, Matcher, check_regex};

use super::{domain, limit_of, limited};

/// By the definition: each `*` is any text.
fn naive(pattern: &[u8], value: &[u8]) -> bool {
    match pattern.split_first() {
        None => value.is_empty(),
        Some((b'*', rest)) => (0..=value.len()).any(|at| naive(rest, &value[at..])),
        Some((first, rest)) => {
            value.split_first().is_some_and(|(byte, value)| byte == first && naive(rest, value))
        }
    }
}

#[test]
fn patterns_of_the_reference() {
    for (pattern, yes, no) in [
        ("foo*", &["foo", "foo1"][..], &["fo", "xfoo"][..]),
        ("bar*b", &["barab", "bar123b", "barb"], &["bara", "xbarb", "bab"]),
        ("foo*bar*baz", &["foo123bar456baz", "foobarbaz"], &["foo123baz", "bar456baz", "foobaz", "foobarba"]),
        ("*", &["", "x"], &[]),
        ("**", &["", "x"], &[]),
        ("a*a", &["aa", "aba"], &["a", "ab"]),
        ("*é*", &["é", "xéx"], &["e"]),
    ] {
        let glob = Glob::new(pattern).unwrap();
        assert!(yes.iter().all(|value| glob.matches(value)), "{pattern}");
        assert!(!no.iter().any(|value| glob.matches(value)), "{pattern}");
    }
    assert_eq!(Glob::new("plain"), None);
}

proptest! {
    #[test]
    fn the_index_finds_the_first_that_matches(
        patterns in prop::collection::vec("[ab*]{1,6}", 1..30),
        values in prop::collection::vec("[ab*]{0,7}", 1..30),
    ) {
        let mut patterns: Vec<String> = patterns.into_iter().filter(|it| it.contains('*')).collect();
        let mut seen = std::collections::HashSet::new();
        patterns.retain(|pattern| seen.insert(pattern.clone()));
        let number = |index: usize| u32::try_from(index).unwrap();
        let descriptors = patterns.iter().enumerate().map(|(index, it)| limited("k", it, number(index)));
        let of_values = domain(descriptors.collect());
        let descriptors = patterns.iter().enumerate().map(|(index, it)| limited(it, "", number(index)));
        let of_keys = domain(descriptors.collect());
        let descriptors = patterns.iter().enumerate().map(|(index, it)| limited(it, "x", number(index)));
        let of_both = domain(descriptors.collect());
        // The exact text goes before all patterns; half of the values are one.
        for value in values.iter().chain(&patterns) {
            let first = patterns.iter().position(|it| naive(it.as_bytes(), value.as_bytes())).map(number);
            let exact = patterns.iter().position(|it| it == value).map(number);
            prop_assert_eq!(limit_of(&of_values, &format!("k={value}")), exact.or(first));
            prop_assert_eq!(limit_of(&of_both, &format!("{value}=x")), exact.or(first));
            prop_assert_eq!(limit_of(&of_keys, &format!("{value}=x")), first);
        }
    }

    /// All expressions of a key are one automaton; it answers as they would one after the other.
    #[test]
    fn of_expressions_the_first_that_matches_all_of_the_value_is_found(
        regexes in prop::collection::vec("[ab](b|a[*]|[.]|[+]|[?]|[|]a){0,3}", 1..6),
        values in prop::collection::vec("[ab]{0,5}", 1..20),
    ) {
        let descriptor = |index: usize| Descriptor {
            matcher: Matcher::Regex(regexes[index].clone()),
            ..limited("k", "", u32::try_from(index).unwrap())
        };
        let usable: Vec<usize> = (0..regexes.len()).filter(|&at| check_regex(&regexes[at]).is_ok()).collect();
        let together = domain(usable.iter().map(|&at| descriptor(at)).collect());
        let alone: Vec<_> = usable.iter().map(|&at| domain(vec![descriptor(at)])).collect();
        for value in &values {
            let entry = format!("k={value}");
            let first = alone.iter().find_map(|one| limit_of(one, &entry));
            prop_assert_eq!(limit_of(&together, &entry), first);
        }
    }

    /// Whatever a request says, matching answers.
    #[test]
    fn no_entry_panics_the_matcher(
        patterns in prop::collection::vec(("\\PC{0,4}", "[\\PC*]{0,6}"), 0..20),
        entries in prop::collection::vec(("\\PC{0,6}", "\\PC{0,12}"), 0..5),
    ) {
        let domains = domain(patterns.iter().map(|(key, value)| limited(key, value, 1)).collect());
        let entries = entries.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let _ = domains.find("d").unwrap().find(entries);
    }
}
