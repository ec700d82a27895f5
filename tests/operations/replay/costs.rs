//! Calls with costs by name, their holds and settlements, under the same and under a smaller budget.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::replay;

const BEGIN: u64 = 1_704_067_200_000_000;

/// A budget of `limit` tokens an hour.
fn config(folder: &std::path::Path, limit: u64) -> PathBuf {
    let file = folder.join(format!("{limit}.yaml"));
    let text = format!(
        "strategies:\n  gateway:\n    hold: {{ max: 10m }}\n    limits:\n      - {{ name: calls, per: [consumer], cost: 1, \
         fixed_window: {{ limit: 60, window: 1h }} }}\n      - {{ name: tokens, per: [consumer], cost: output, \
         fixed_window: {{ limit: {limit}, window: 1h }} }}\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

/// A line: the operation, its fields, and what the limit `tokens` granted.
fn line(sequence: u64, operation: &str, more: &Value, granted: u64) -> String {
    let mut line = json!({
        "log": "decisions", "incarnation": "a", "sequence": sequence, "keys": 1,
        "time_us": BEGIN + sequence * 1_000_000, "operation": operation, "strategy": "gateway", "resource": "chat",
        "consumer": "acme", "cost": 1, "granted": 0, "outcome": "allowed",
        "limits": [{ "name": "calls", "granted": 1 }, { "name": "tokens", "granted": granted }],
    });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line.to_string()
}

fn log(folder: &std::path::Path) -> PathBuf {
    let held = |id: &str, output: u64| json!({ "id": id, "costs": { "output": output }, "hold_for_us": 120_000_000 });
    let mut partly = held("c", 8_000);
    partly["at_least"] = json!({ "output": 256 });
    let lines = [
        line(1, "charge", &held("a", 4_096), 4_096),
        line(2, "charge", &held("b", 12_000), 12_000),
        line(3, "charge", &partly, 3_904),
        line(
            4,
            "settle",
            &json!({ "id": "b", "cost": 0, "costs": { "output": 1_000 }, "outcome": "done" }),
            12_000,
        ),
        line(5, "charge", &json!({ "costs": { "output": 11_000 } }), 11_000),
        line(6, "charge", &json!({ "costs": { "output": 1 }, "outcome": "denied" }), 0),
    ];
    crate::support::scratch::file(folder, "decisions.jsonl", lines.join("\n") + "\n")
}

#[test]
fn holds_and_settlements_are_replayed_with_their_costs() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path());
    let args = ["--replay", log.to_str().unwrap()];
    let same = replay(&config(folder.path(), 20_000), &args);
    let row = |result: &Value| result["strategies"][0].clone();
    let numbers = |row: Value, names: &[&str]| {
        names.iter().map(|name| row[*name].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let names = ["compared", "now_denied", "now_allowed", "granted_otherwise", "refused", "not_compared"];
    assert_eq!(numbers(row(&same), &names), [5, 0, 0, 0, 0, 1], "{same}");
    // The second call is above the limit, the third gets what the first has left, and the fifth finds too little.
    let less = replay(&config(folder.path(), 10_000), &args);
    assert_eq!(numbers(row(&less), &names), [5, 2, 0, 1, 0, 1], "{less}");
    let partly = &less["examples"][1];
    assert_eq!(partly["costs"]["output"], json!({ "cost": 8_000, "at_least": 256 }));
    assert_eq!(partly["before"]["granted_by_limit"]["tokens"], 3_904);
    assert_eq!(partly["after"]["granted_by_limit"]["tokens"], 5_904);
}

#[test]
fn costs_that_cannot_be_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), 20_000);
    for (more, mistake) in [
        (json!({ "costs": { "output": -1 } }), "`costs` must be an object of whole numbers"),
        (
            json!({ "costs": {}, "at_least": { "output": 1 } }),
            "`at_least` has \"output\", which `costs` has not",
        ),
        (json!({ "costs": { "output": 1 }, "limits": 7 }), "`limits` must be a list of objects"),
    ] {
        let file =
            crate::support::scratch::file(folder.path(), "wrong.jsonl", line(1, "charge", &more, 0) + "\n");
        let args = ["simulate", "--config", config.to_str().unwrap(), "--replay", file.to_str().unwrap()];
        let out = crate::support::command::weir(&args);
        let said = crate::support::command::text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains(mistake), "{said}");
    }
}
