//! `weir explain` and `weir check` on strategies that nodes count on their own.

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
    assert!(explained.contains("}A50,10,60s:api:each|Cc"), "{explained}");
    let json = weir(&["explain", "--config", path, "r", "c", "--output", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let said = &json["approximate"];
    assert_eq!(
        [&said["max_over"], &said["share"], &said["sync_us"]],
        [&json!(50), &json!(5), &json!(200_000)]
    );
}

/// The loss of a place is long or large: `weir check` says so.
#[test]
fn check_warns_of_shares_and_windows_that_are_large() {
    let warned = |approximate: &str, window: &str| {
        let limit =
            format!("{{ name: each, per: [consumer], fixed_window: {{ limit: 1000, window: {window} }} }}");
        let path = file(&format!(
            "store: {{ redis: {{ nodes: ['redis://a'] }} }}\n\
             strategies: {{ api: {{ approximate: {approximate}, limits: [{limit}] }} }}\n"
        ));
        let checked = weir(&["check", path.path().to_str().unwrap()]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        text(&checked.stderr)
            .lines()
            .filter(|line| line.starts_with("warning: "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let small = "{ max_over: 900, nodes: 10 }";
    assert!(warned(small, "5m").is_empty(), "a share of 100 of 1000, and two windows of 5 minutes");
    let long = warned(small, "1d");
    assert!(
        long[0].contains("two windows (2d)") && long[0].contains("denies at 900 instead of 1000"),
        "{long:?}"
    );
    assert_eq!(warned("{ max_over: 990, nodes: 10 }", "1m").len(), 1);
}
