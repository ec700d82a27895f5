//! Whatever a file holds, reading it ends, and ends without a panic.

use std::io::Write as _;

use proptest::prelude::*;
use weir_config::{Config, ConfigOverrides, EXAMPLE, settings};
use weir_units::Micros;

use super::{accepted, limit};
use crate::support::damage::changed;

/// Pieces that mean something to YAML, or to us.
const PIECES: [&str; 32] = [
    "\n",
    "\n  ",
    "- ",
    ": ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "# ",
    "&a ",
    "*a",
    "!t ",
    "'",
    "\"",
    "|\n",
    ">-\n",
    "%YAML 1.2\n",
    "---\n",
    "...\n",
    "\t",
    "\r\n",
    "\u{feff}",
    "\0",
    "\u{85}",
    "é",
    "\\x",
    "strategies",
    "10s",
    "limits: ",
    "null",
];

/// Errors must be printable too, so they are.
fn survives(text: &str) {
    if let Err(errors) = super::parse(text) {
        assert!(!errors.is_empty());
    }
}

/// Texts of lists, most of them valid.
fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop_oneof!["[ab]{1,3}[*]?", "[ab]{1,3}[*]?", ".{0,3}[*]?"], 0..4)
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let _ = Config::load(file.path(), &weir::features::overrides());
    }

    #[test]
    fn any_yaml_is_survived(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        survives(&pieces.concat());
    }

    /// The example with a few cuts and insertions.
    #[test]
    fn any_change_of_the_example_is_survived(text in changed(EXAMPLE, &PIECES)) {
        survives(&text);
    }

    /// Lists and overrides of anything: refused or taken, and what is taken answers for anybody.
    #[test]
    fn any_exceptions_are_survived(
        [allow, deny, who, what] in [texts(), texts(), texts(), texts()],
        asked in prop::collection::vec((".{0,4}", ".{0,4}"), 1..4),
    ) {
        let number = "{ each: { uniform: { interval: 2s } } }";
        let overrides = who.iter().zip(&what).map(|(who, what)| {
            format!("{{ consumer: {who:?}, resource: {what:?}, strategy: a, limits: {number} }}")
        });
        let overrides: Vec<String> = overrides.collect();
        let text = format!(
            "access: {{ allow: {allow:?}, deny: {deny:?} }}\noverrides: [{}]\n{}",
            overrides.join(", "),
            super::STRATEGIES,
        );
        survives(&text);
        if let Ok(config) = Config::parse(&text, "weir.yaml", &weir::features::overrides()) {
            for (resource, consumer) in &asked {
                prop_assert!(config.rules.resolve_for(resource, consumer, "a").is_ok());
            }
        }
    }

    /// The file cut short, wherever that is.
    #[test]
    fn any_beginning_of_the_example_is_survived(length in 0..EXAMPLE.len()) {
        if let Some(text) = EXAMPLE.get(..length) {
            survives(text);
        }
    }

    #[test]
    fn any_setting_is_survived(text in ".{0,40}") {
        let names = settings().into_iter().filter_map(|(_, setting)| setting.outside.name());
        let given = names.fold(ConfigOverrides::default(), |given, name| given.with(name, text.as_str()));
        let _ = Config::built_in_with(&given).map_err(|errors| errors.to_string());
    }

    /// A printed duration is read as the same duration.
    #[test]
    fn durations_read_back(micros in 1..4_000_000_000_u64) {
        let printed = Micros(micros).to_string();
        let config = accepted(&limit(&format!("uniform: {{ interval: {printed} }}")));
        let expected = super::configured(weir_core::algorithm::Algorithm::uniform(Micros(micros)).unwrap());
        prop_assert_eq!(config.rules.strategies()[0].algorithms()[0], expected);
    }
}
