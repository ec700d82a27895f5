//! What the recipe of an operation on a queue asks for.

use super::none;
use super::recipes::{test_sources, text};

/// Random calls compare the model with its twin, and rows say what both must answer.
#[test]
fn every_operation_on_a_queue_has_rows_and_random_calls() {
    let model = include_str!("../../../crates/queues/src/model/call.rs");
    let ops = model.split_once("pub enum QueueOp").unwrap().1.split_once("\n}").unwrap().0;
    let ops = ops
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|letter: char| letter.is_ascii_uppercase()));
    let ops: Vec<&str> = ops.map(|line| line.split([' ', '(', ',']).next().unwrap_or_default()).collect();
    assert!(ops.len() > 5, "{ops:?}");
    let tests = test_sources();
    let random = text(&tests, |path| path.contains("queues/") && path.ends_with("/differential.rs"));
    let rows = text(&tests, |path| path.contains("queues/") && !path.ends_with("/differential.rs"));
    let lacks = |place: &str, text: &str| {
        let missing = ops.iter().filter(|op| !text.contains(&format!("QueueOp::{op}")));
        missing.map(|op| format!("no {place} has {op}")).collect::<Vec<_>>()
    };
    none([lacks("random call", &random), lacks("row", &rows)].concat());
}
