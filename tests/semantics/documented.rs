//! The pictures and figures of docs/algorithms.md are those of this program: the tests draw and measure them again.

#[cfg(feature = "leases")]
mod adaptive;
mod asked;
mod budgets;
mod coming_from;
mod footprint;
mod links;
mod names;
mod operations;
mod pictures;
mod promises;
mod recipes;

use std::sync::Arc;

use weir_config::{Config, ConfigOverrides};
use weir_core::strategy::Strategy;

const TEXT: &str = include_str!("../../docs/algorithms.md");

/// The strategy that a file would have with one limit, written as the document writes it.
fn strategy(algorithm: &str) -> Arc<Strategy> {
    let text = format!(
        "strategies: {{ api: {{ limits: [{{ name: each, per: [resource, consumer], {algorithm} }}] }} }}"
    );
    let config = Config::parse(&text, "docs/algorithms.md", &ConfigOverrides::default());
    let config = config.unwrap_or_else(|errors| panic!("{algorithm}:\n{errors}"));
    Arc::clone(&config.rules.strategies()[0])
}

/// The names of all algorithms, from the error for a limit without one.
fn names() -> Vec<String> {
    let text = "strategies: { api: { limits: [{ name: each, per: [resource] }] } }";
    let error = Config::parse(text, "here", &ConfigOverrides::default()).unwrap_err().to_string();
    let (_, names) = error.split_once("give it one of ").expect("it tells the names");
    names.trim().split(", ").map(str::to_owned).collect()
}

/// An algorithm that the document leaves out cannot be found by its readers.
#[test]
fn every_algorithm_has_its_place() {
    let readme = include_str!("../../README.md");
    for name in names() {
        assert!(TEXT.contains(&format!("\n{name}: {{")), "{name} has no picture");
        for (file, text) in [("docs/algorithms.md", TEXT), ("README.md", readme)] {
            let mut rows = text.lines().filter(|line| line.starts_with("| `"));
            assert!(rows.any(|row| row.contains(&format!("`{name}`"))), "{name} is in no table of {file}");
        }
    }
}
