//! Whatever a file holds, reading it ends, and ends without a panic; what is read answers.

use proptest::prelude::*;
use weir_envoy::files::EnvoyFiles;

use crate::support::damage::changed;

const FILE: &str = r#"
domain: d
descriptors:
  - key: a
    value: "v*"
    share_threshold: true
    metadata: { a: [1, .5, ~] }
    rate_limit: &limit { unit: minute, requests_per_unit: 10, name: n, replaces: [ { name: m } ] }
    descriptors:
      - { key: b, value_cidr: [10.0.0.0/8], rate_limit: { <<: *limit, algorithm: gcra, burst: 3 } }
      - { key: b, value_regex: "[a-z]+", shadow_mode: true, rate_limit: { unlimited: true } }
"#;

const PIECES: [&str; 34] = [
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    ": ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "# ",
    "&limit ",
    "*limit",
    "<<: *limit",
    "!t ",
    "'",
    "\"",
    "|\n",
    "---\n",
    "\t",
    "\u{feff}",
    "\0",
    "é",
    "\\x",
    "key: ",
    "value: ",
    "value_cidr: ",
    "value_regex: ",
    "rate_limit: ",
    "unit: ",
    "0.25",
    "(",
    "null",
];

/// Errors must be printable too, so they are.
fn survives(text: &str) {
    match EnvoyFiles::parse([("f", text)], false) {
        Err(errors) => assert!(!errors.to_string().is_empty()),
        Ok(files) => {
            let domains = files.compile();
            for entries in [&[("a", "vx"), ("b", "10.1.2.3")][..], &[("a", ""), ("", "x")], &[]] {
                let _ = domains.find("d").map(|domain| domain.find(entries.iter().copied()).is_some());
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        survives(&text);
    }

    #[test]
    fn any_pieces_are_survived(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)) {
        survives(&pieces.concat());
    }

    #[test]
    fn any_change_of_a_file_is_survived(text in changed(FILE, &PIECES)) {
        survives(&text);
    }

    #[test]
    fn any_beginning_of_a_file_is_survived(length in 0..FILE.len()) {
        if let Some(text) = FILE.get(..length) {
            survives(text);
        }
    }

    /// Values of every sort in every place.
    #[test]
    fn any_values_are_survived(
        key in prop::sample::select(&["domain", "key", "value", "unit", "burst", "value_regex", "value_cidr", "metadata", "rate_limit", "descriptors"][..]),
        value in prop_oneof!["\\PC{0,30}", "[-+.0-9eExX_]{1,12}", Just("{ a: b }".to_owned()), Just("[a, { key: b }]".to_owned())],
    ) {
        survives(&format!("domain: d\ndescriptors:\n  - key: a\n    {key}: {value}\n    rate_limit: {{ unit: day, {key}: {value} }}\n"));
        survives(&format!("domain: d\n{key}: {value}\n"));
    }
}

#[test]
fn the_file_that_is_changed_is_right_itself() {
    assert_eq!(
        EnvoyFiles::parse([("f", FILE)], false).map_err(|errors| errors.to_string()).map(|it| it.count),
        Ok(1)
    );
}
