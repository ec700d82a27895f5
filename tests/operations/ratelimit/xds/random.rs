//! Random limits and requests: the control plane's limits, files of the same, and a model of the reference's search give the
//! same answers.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use weir_envoy::files::EnvoyFiles;

use super::{Ads, start};
use crate::support::as_messages::as_messages;

/// A descriptor of a random domain. The numbers of limits differ, so that an answer says which one it is.
#[derive(Debug, Clone)]
struct Node {
    key: String,
    value: String,
    limit: Option<u32>,
    below: Vec<Node>,
}

fn level(depth: u32) -> BoxedStrategy<Vec<Node>> {
    let value = prop_oneof![
        2 => Just(""), 3 => Just("x"), 2 => Just("y"), 2 => Just("x*"), 2 => Just("*y"), 1 => Just("*"), 1 => Just("x*y"),
    ];
    let below = if depth == 0 { Just(Vec::new()).boxed() } else { level(depth - 1) };
    let node = (prop_oneof![3 => Just("a"), 1 => Just("b")], value, any::<bool>(), below).prop_map(
        |(key, value, limited, below)| {
            let limit = (limited || below.is_empty()).then_some(0);
            Node { key: key.to_owned(), value: value.to_owned(), limit, below }
        },
    );
    prop::collection::vec(node, 1..6)
        .prop_map(|nodes| {
            let mut seen = std::collections::HashSet::new();
            nodes.into_iter().filter(|node| seen.insert((node.key.clone(), node.value.clone()))).collect()
        })
        .boxed()
}

fn number(level: &mut [Node], next: &mut u32) {
    for node in level {
        *next += 1;
        node.limit = node.limit.map(|_| *next);
        number(&mut node.below, next);
    }
}

fn document(level: &[Node]) -> Value {
    let one = |node: &Node| {
        let mut one = json!({ "key": node.key });
        if !node.value.is_empty() {
            one["value"] = json!(node.value);
        }
        if let Some(limit) = node.limit {
            one["rate_limit"] = json!({ "unit": "day", "requests_per_unit": 1_000 + limit });
        }
        if !node.below.is_empty() {
            one["descriptors"] = document(&node.below);
        }
        one
    };
    level.iter().map(one).collect()
}

/// `*` is any text.
fn matches(pattern: &[u8], value: &[u8]) -> bool {
    match pattern.split_first() {
        None => value.is_empty(),
        Some((b'*', rest)) => (0..=value.len()).any(|at| matches(rest, &value[at..])),
        Some((first, rest)) => {
            value.split_first().is_some_and(|(byte, value)| byte == first && matches(rest, value))
        }
    }
}

/// The search of the reference: the exact text, the first pattern, the key without a value; and no way back.
fn found(level: &[Node], entries: &[(String, String)]) -> Option<u32> {
    let ((key, value), rest) = entries.split_first()?;
    let of_key = || level.iter().filter(|node| node.key == *key);
    let node = of_key()
        .find(|node| node.value == *value)
        .or_else(|| {
            of_key().find(|node| node.value.contains('*') && matches(node.value.as_bytes(), value.as_bytes()))
        })
        .or_else(|| of_key().find(|node| node.value.is_empty()))?;
    if rest.is_empty() { node.limit } else { found(&node.below, rest) }
}

fn entries() -> impl Strategy<Value = Vec<(String, String)>> {
    let key = prop_oneof![4 => Just("a"), 2 => Just("b"), 1 => Just("c")];
    let value = prop_oneof![Just("x"), Just("y"), Just("xy"), Just("z"), Just("x*"), Just("*"), Just("xzy")];
    let entry = (key, value).prop_map(|(key, value)| (key.to_owned(), value.to_owned()));
    prop::collection::vec(entry, 1..4)
}

#[test]
fn random_limits_of_a_control_plane_are_those_of_files_and_of_the_model() {
    let ads = Ads::start();
    ads.set("0", &[]);
    let started = start(&ads.address.to_string(), &[]);
    let (version, limited) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let domains = (level(2), prop::collection::vec(entries(), 24));
    let result = runner.run(&domains, |(mut nodes, asked)| {
        number(&mut nodes, &mut 0);
        let text = json!({ "domain": "d", "descriptors": document(&nodes) }).to_string();
        let files = EnvoyFiles::parse([("d.yaml", &*text)], false).unwrap().compile();
        version.set(version.get() + 1);
        let name = version.get().to_string();
        ads.set(&name, &as_messages([&*text]));
        ads.accepted(&name);
        for entries in &asked {
            let expected = found(&nodes, entries);
            let pairs: Vec<(&str, &str)> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            let from_file = files.find("d").unwrap().find(pairs.iter().copied());
            let from_file =
                from_file.and_then(|found| Some(found.limit.as_ref()?.requests_per_unit() - 1_000));
            prop_assert_eq!(from_file, expected, "{:?} of {}", entries, text);
            let answer = started.json("d", &pairs);
            let shown =
                expected.map_or("OK without limit".to_owned(), |limit| format!("OK {}/DAY", 1_000 + limit));
            prop_assert_eq!(answer, shown, "{:?} of {}", entries, text);
            limited.set(limited.get() + usize::from(expected.is_some()));
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    // Of 960 random requests, 100 to 250 do.
    assert!(limited.get() > 20, "{} requests met a limit", limited.get());
}
