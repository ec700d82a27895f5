//! What `weir explain` and `weir check` say of strategies that nodes count on their own.

use serde_json::{Value, json};

use super::file;
use crate::support::command::{text, weir};

const COUNTED: &str = r#"
store: { redis: { nodes: ["redis://a"] } }
strategies:
  api:
    approximate: { max_over: 50, nodes: 10, sync: 200ms }
    limits: [{ name: each, per: [consumer], fixed_window: { limit: 100, window: 1m } }]
resources: [{ match: "*", strategy: api }]
"#;

/// The bound is said in words with the numbers of the configuration.
#[test]
fn the_bound_is_said_in_words() {
    let file = file(COUNTED);
    let path = file.path().to_str().unwrap();
    let explained = text(&weir(&["explain", "--config", path, "r", "c"]).stdout);
    let checked = text(&weir(&["check", path]).stderr);
    for line in [
        "a window of 1m admits at most 45 above the limit of 100, whatever is late, lost or crashed: 9 nodes with at most 5 \
         each that Redis has not counted when another one gets the last unit; max_over is 50",
        "10 nodes count on their own and tell Redis every 200ms what they have counted; Redis decides for further nodes, at a \
         limit of 95, and says so in /readyz",
        "a loss of Redis's data and a step of its clock add at most 100 + 50 + 10 * 5 each; answers of on_store_failure, debits \
         and refunds are not part of the bound",
    ] {
        for said in [&explained, &checked] {
            assert!(said.contains(line), "{line}\n{said}");
        }
    }
    assert!(explained.contains("api:each:approximate-50-10-60000000:c1:c"), "{explained}");
    let json = weir(&["explain", "--config", path, "r", "c", "--output", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let said = &json["approximate"];
    assert_eq!(
        [&said["max_over"], &said["share"], &said["sync_us"]],
        [&json!(50), &json!(5), &json!(200_000)]
    );
}
