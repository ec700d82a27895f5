//! Costs by limit and holds, as `weir explain` and `weir check` tell them.

use serde_json::{Value, json};

use super::without_tag;
use crate::support::command::{text, weir};

#[test]
fn costs_and_holds_are_told_with_their_numbers() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples/budgets.yaml");
    let said = weir(&["explain", "--config", file, "chat", "acme"]);
    let said = without_tag(&text(&said.stdout));
    for line in [
        "    cost   always 1, charged at once, also by a hold\n",
        "    cost   `input` of the request, charged at once; a settlement charges what is above that\n",
        "    cost   `output` of the request, held until it is settled\n",
        "    cost   `usd` of the request, held until it is settled; in usd_micros; near its limit from 80% on\n",
        "    held   weir:{*}OWgateway:output|Cacme\n",
        "for at most 10m, ending at multiples of 37500ms\n",
        "is free again after at most 10m 38s\n",
        "ids are known for 1h: about ",
        "    key    weir:{*}Tgateway|ID|chat|acme\n",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
    let json = weir(&["explain", "--config", file, "chat", "acme", "--output", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        json["hold"],
        json!({ "max_us": 600_000_000, "known_for_us": 3_600_000_000_u64, "grain_us": 37_500_000 })
    );
    let budget = &json["limits"][3];
    assert_eq!(
        [&budget["cost"], &budget["unit"], &budget["near_percent"]],
        [&json!("usd"), &json!("usd_micros"), &json!(80)]
    );
    assert_eq!([&json["limits"][0]["cost"], &json["limits"][0]["held_key"]], [&json!(1), &Value::Null]);
    let check = weir(&["check", file]);
    assert_eq!(text(&check.stderr), "", "other costs make no limit unreachable");
}
