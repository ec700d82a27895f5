//! `weir explain` and `weir check` on nodes that decide by themselves.

use serde_json::{Value, json};

use super::file;
use crate::support::command::{text, weir};

const LOCAL: &str = r#"
store: { redis: { nodes: ["redis://a"] } }
strategies:
  api:
    on_store_failure: { local: { share: 1/4, when_full: allow } }
    limits:
      - { name: window, per: [consumer], fixed_window: { limit: 100, window: 1m } }
      - { name: own, per: [consumer], fixed_window: { limit: 100, window: 1m, anchored: true } }
      - { name: bucket, per: [consumer], token_bucket: { rate: 8/s, burst: 40 } }
      - { name: gate, per: [consumer], uniform: { interval: 10s } }
      - { name: stock, per: [consumer], interval_refill: { capacity: 80, refill: 4, period: 1h } }
resources: [{ match: "*", strategy: api }]
"#;

/// The bound of what nodes admit by themselves, in words with the numbers of the configuration.
#[test]
fn the_bound_without_redis_is_said_in_words() {
    let file = file(LOCAL);
    let path = file.path().to_str().unwrap();
    let explained = text(&weir(&["explain", "--config", path, "r", "c"]).stdout);
    let checked = text(&weir(&["check", path]).stderr);
    for line in [
        "failure   on_store_failure: local, 1/4 of each limit on each node; when_full: allow",
        "new keys beyond store.redis.local_budget pass, and this has no bound",
        "a loss of Redis's data adds one limit to a bound; a restart of a node within the window, and clocks that differ, \
         add one smaller limit each",
        "local  fixed_window: { limit: 25, window: 1m } on each node",
        "local  token_bucket: { rate: 2/s, burst: 10 } on each node",
        "local  uniform: { interval: 40s } on each node",
    ] {
        assert!(explained.contains(line), "{line}\n{explained}");
    }
    for bound in [
        "n nodes that decided admit at most n * 25 in a window in which Redis decided nothing, and 100 + n * 25 in any other",
        "n nodes that decided admit at most n * 50 in a window in which Redis decided nothing, and 100 + n * 50 in any \
         other, because each node anchors its own windows",
        "n nodes that decided admit at most n * 10 at once and then n * 2/s while Redis decides nothing; and 40 at once \
         with the whole rate more where it does",
        "each node admits one call every 40s",
        "n nodes that decided admit at most n * 20, and n * 1 every 1h, while Redis decides nothing; and 80 with its own \
         refills more where it does",
    ] {
        for said in [&explained, &checked] {
            assert!(said.contains(bound), "{bound}\n{said}");
        }
    }
    let json = weir(&["explain", "--config", path, "r", "c", "--output", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["on_store_failure"], "local");
    assert_eq!([&json["local"]["share"], &json["local"]["limits"][0]["limit"]], [&json!("1/4"), &json!(25)]);
}
