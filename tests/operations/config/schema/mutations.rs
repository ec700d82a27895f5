//! Changed configurations: what the schema refuses, the parser refuses too; and it refuses enough.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use super::super::parse;
use super::{FULL, full_on_memory, mistakes, validator};
use crate::support::yaml::document;

/// Values that mean something somewhere.
fn values() -> Vec<Value> {
    let texts = "10s|1m30s|5ms|0s|s|10|1_000|1__0|30/1m|5/s|/s|512MiB|1KB|1GiB|true|evict|refuse|single|\
                 cluster|sentinel|allow|deny|error|local|resource|consumer|tenant|all|a b||*|a/*|a*b|\
                 redis://a:1|redis://a/1|127.0.0.1:1|[::1]:2|{wait}|day|+02:00|gold-*|rediss://u:p@a:1|null";
    let mut values: Vec<Value> = texts.split('|').map(|text| json!(text)).collect();
    values.extend([
        json!(0),
        json!(1),
        json!(9),
        json!(20_000),
        json!(1_048_576),
        json!(u64::MAX),
        json!(1.5),
        json!(-1),
    ]);
    values.extend([
        json!(true),
        json!(false),
        Value::Null,
        json!([]),
        json!({}),
        json!(["resource"]),
        json!(["redis://b"]),
    ]);
    values.extend([
        json!({ "interval": "1s" }),
        json!({ "rate": "5/s" }),
        json!({ "limit": 5, "window": "1m" }),
        json!({ "limit": 5, "calendar": "day" }),
        json!({ "allow": ["bot-*"], "deny": [] }),
        json!({ "a": { "uniform": { "interval": "1s" } } }),
    ]);
    values
}

/// Keys of all sections.
fn keys() -> Vec<&'static str> {
    let keys = "server store memory redis uniform gcra limit window burst name per zzzz strategies \
                aligned calendar offset spread count_denied access overrides limits topology master_name";
    keys.split_whitespace().collect()
}

/// A path to every value below `value`, itself included.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| places(item, &format!("{path}/{index}"), found));
        }
        Value::Object(entries) => {
            for (key, item) in entries {
                places(item, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

fn change(root: &mut Value, at: usize, what: usize, with: usize) {
    let mut found = Vec::new();
    places(root, "", &mut found);
    let place = root.pointer_mut(&found[at % found.len()]).unwrap();
    let (keys, values) = (keys(), values());
    let value = values[with % values.len()].clone();
    match place {
        Value::Object(entries) if what % 4 == 1 => {
            entries.insert(keys[with % keys.len()].to_owned(), value);
        }
        Value::Object(entries) if what % 4 >= 2 && !entries.is_empty() => {
            let key = entries.keys().nth(with % entries.len()).unwrap().clone();
            let removed = entries.remove(&key).unwrap();
            if what % 4 == 3 {
                entries.insert(keys[with / 7 % keys.len()].to_owned(), removed);
            }
        }
        Value::Array(items) if what % 4 == 1 => items.push(value),
        Value::Array(items) if what % 4 == 2 && !items.is_empty() => {
            items.remove(with % items.len());
        }
        Value::Array(items) if what % 4 == 3 && !items.is_empty() => {
            let twice = items[with % items.len()].clone();
            items.push(twice);
        }
        place => *place = value,
    }
}

/// As YAML, with texts bare where that is the same: numbers with `_` are numbers only when bare.
fn written(value: &Value) -> String {
    match value {
        Value::String(text)
            if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/.".contains(&byte))
                && document(text).is_ok_and(|read| read == *value) =>
        {
            text.clone()
        }
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| format!("{}: {}", json!(key), written(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

#[test]
fn what_the_schema_refuses_the_parser_refuses() {
    let validator = validator();
    let [both, neither, parser_alone] = [0, 0, 0].map(Cell::new);
    let mut runner = TestRunner::new(Config { cases: 2000, failure_persistence: None, ..Config::default() });
    let changes = proptest::collection::vec((any::<usize>(), any::<usize>(), any::<usize>()), 1..3);
    runner
        .run(&(any::<bool>(), changes), |(memory, changes)| {
            let text = if memory { full_on_memory() } else { FULL.to_owned() };
            let mut config = document(&text).unwrap();
            changes.into_iter().for_each(|(at, what, with)| change(&mut config, at, what, with));
            let text = written(&config);
            let mistakes = mistakes(&validator, &document(&text).unwrap());
            match (parse(&text), mistakes.is_empty()) {
                (Ok(_), true) => neither.set(neither.get() + 1),
                (Ok(_), false) => {
                    prop_assert!(false, "{text}\nis refused by the schema alone:\n{mistakes:#?}")
                }
                (Err(_), true) => parser_alone.set(parser_alone.get() + 1),
                (Err(_), false) => both.set(both.get() + 1),
            }
            Ok(())
        })
        .unwrap();
    let [both, neither, parser_alone] = [both, neither, parser_alone].map(Cell::into_inner);
    // Else nothing was shown.
    assert!(both > 500 && neither > 50, "both {both}, neither {neither}, the parser alone {parser_alone}");
    assert!(parser_alone < both, "both {both}, the parser alone {parser_alone}: the schema sees little");
}

/// An unknown key in any mapping, and the wrong kind of value anywhere, is seen by both.
#[test]
fn unknown_keys_and_wrong_kinds_are_refused_by_both() {
    let validator = validator();
    for text in [FULL.to_owned(), full_on_memory()] {
        let whole = document(&text).unwrap();
        let mut found = Vec::new();
        places(&whole, "", &mut found);
        for path in found {
            let mut wrong = whole.clone();
            let place = wrong.pointer_mut(&path).unwrap();
            match place {
                Value::Object(entries) => drop(entries.insert("z z".to_owned(), json!(1))),
                Value::Array(_) => *place = json!({ "a": 1 }),
                _ => *place = Value::Array(vec![Value::Object(Map::new())]),
            }
            let text = written(&wrong);
            assert!(!mistakes(&validator, &wrong).is_empty(), "{path}\n{text}\nis taken by the schema");
            assert!(parse(&text).is_err(), "{path}\n{text}\nis taken by the parser");
        }
    }
}
