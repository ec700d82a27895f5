//! What the schema calls a default is what a file gets that does not say it.

use serde_json::{Value, json};
use weir_config::schema;

use super::super::{parse, section};

/// The defaults below a mapping of the schema, as a file would say them.
fn defaults(mapping: &Value) -> Value {
    let keys = mapping["properties"].as_object().unwrap().iter();
    let section = |key: &Value| key["properties"].is_object().then(|| defaults(key));
    keys.filter_map(|(name, key)| Some((name.clone(), key.get("default").cloned().or_else(|| section(key))?)))
        .collect()
}

/// What the schema calls a default is what a file gets that says nothing.
#[test]
fn its_defaults_are_those_of_the_parser() {
    let schema = schema();
    let of = |place: &str| defaults(schema.pointer(place).unwrap());
    let file = |text: String| {
        let config = parse(&section(&text)).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        (config.server, config.store, config.messages, config.envoy)
    };
    let (server, messages) = (of("/properties/server"), of("/properties/messages"));
    let envoy = of("/properties/envoy");
    assert!(server["limits"]["max_streams"].is_number(), "{server}");
    let memory = of("/$defs/store/properties/memory");
    let written =
        format!("server: {server}\nmessages: {messages}\nenvoy: {envoy}\nstore: {{ memory: {memory} }}");
    assert_eq!(file(written), file(String::new()));

    let mut redis = of("/$defs/redis");
    redis["nodes"] = Value::from(vec!["redis://a"]);
    redis.as_object_mut().unwrap().remove("tls");
    let written = format!("store: {{ redis: {redis} }}");
    assert_eq!(file(written), file("store: { redis: { nodes: [\"redis://a\"] } }".to_owned()));
}

/// The same of a strategy's keys and its limits'.
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
