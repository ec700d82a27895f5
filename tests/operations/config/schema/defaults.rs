//! A default of the schema is the value of a file without the key.

use serde_json::{Value, json};
use weir_config::schema;

use super::super::parse;

/// The defaults below a mapping of the schema, as a file would say them.
fn defaults(mapping: &Value) -> Value {
    let keys = mapping["properties"].as_object().unwrap().iter();
    let section = |key: &Value| key["properties"].is_object().then(|| defaults(key));
    keys.filter_map(|(name, key)| Some((name.clone(), key.get("default").cloned().or_else(|| section(key))?)))
        .collect()
}

/// Defaults of strategies and limits. Settings have theirs in the table that schema and parser share.
#[test]
fn the_defaults_of_limits_are_those_of_the_parser() {
    let schema = schema();
    let written = |place: &str, given: Value, without: &[&str]| {
        let mut all = defaults(schema.pointer(place).unwrap());
        all.as_object_mut().unwrap().retain(|key, _| !without.contains(&key.as_str()));
        all.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        all
    };
    let limit = |name: &str, numbers: &Value| json!({ "name": "l", "per": ["consumer"], name: numbers });
    let strategy = |strategy: &Value| {
        let config = parse(&json!({ "strategies": { "a": strategy } }).to_string()).unwrap();
        // Each has an identity of its own, which no file says.
        let (id, family) = (config.rules.strategies()[0].id(), config.rules.strategies()[0].family());
        let all = format!("{:?}", config.rules.strategies()).replace(&format!("{id:?}"), "");
        all.replace(&format!("family: {family}"), "")
    };
    for (name, given, without) in [
        ("fixed_window", json!({ "limit": 5, "window": "1h" }), &["offset"] as &[&str]),
        ("fixed_window", json!({ "limit": 5, "calendar": "day" }), &["anchored", "spread"]),
        ("interval_refill", json!({ "capacity": 5, "refill": 1, "period": "1h" }), &[]),
        ("bucketed_window", json!({ "limit": 5, "window": "1h", "buckets": 6 }), &[]),
        ("sliding_log", json!({ "limit": 5, "window": "1h" }), &["max_held"]),
        ("sliding_log", json!({ "limit": 5, "window": "1h", "hold": true }), &[]),
    ] {
        let numbers = written(&format!("/$defs/{name}"), given.clone(), without);
        assert_ne!(numbers, given, "{name} has no default");
        let [with, bare] =
            [numbers, given].map(|numbers| strategy(&json!({ "limits": [limit(name, &numbers)] })));
        assert_eq!(with, bare, "{name}");
    }
    let given = json!({ "limits": [limit("uniform", &json!({ "interval": "1s" }))] });
    let with = written("/$defs/strategies/additionalProperties", given.clone(), &[]);
    assert_eq!(strategy(&with), strategy(&given));
}
