//! Schema and parser know the same keys.

use std::collections::BTreeSet;

use serde_json::Value;
use weir::features::schema;

use super::super::parse;

/// The places of all mappings in the schema, and a file with an unknown key, `zzzz`, in each. The parser then lists
/// the keys it knows there.
const MAPPINGS: [(&str, &str); 58] = [
    ("", "zzzz: 1"),
    ("/properties/server", "server: { zzzz: 1 }"),
    ("/properties/server/properties/limits", "server: { limits: { zzzz: 1 } }"),
    ("/$defs/identity", "server: { identity: { zzzz: 1 } }"),
    ("/$defs/jwt/items", "server: { identity: { jwt: [{ zzzz: 1 }] } }"),
    ("/$defs/forwarded", "server: { identity: { forwarded_client_cert: { zzzz: 1 } } }"),
    ("/$defs/authorize/items", "authorize: [{ zzzz: 1 }]"),
    ("/$defs/server_tls", "server: { tls: { zzzz: 1 } }"),
    ("/$defs/server_tls", "server: { admin_tls: { zzzz: 1 } }"),
    ("/$defs/server_tls/properties/client_crl", "server: { tls: { client_crl: { zzzz: 1 } } }"),
    ("/properties/messages", "messages: { zzzz: 1 }"),
    ("/properties/envoy", "envoy: { zzzz: 1 }"),
    ("/$defs/envoy_xds", "envoy: { xds: { zzzz: 1 } }"),
    ("/$defs/envoy_xds/properties/tls", "envoy: { xds: { tls: { zzzz: 1 } } }"),
    ("/$defs/envoy_rules/items", "envoy: { rules: [{ zzzz: 1 }] }"),
    ("/$defs/envoy_all_or_none/items", "envoy: { all_or_none: [{ zzzz: 1 }] }"),
    ("/properties/usage", "usage: { zzzz: 1 }"),
    ("/properties/http", "http: { zzzz: 1 }"),
    ("/properties/http/properties/limits", "http: { limits: { zzzz: 1 } }"),
    (
        "/properties/http/properties/checks/additionalProperties",
        "http: { checks: { a: { proxy: caddy, resource: r, consumer: address, zzzz: 1 } } }",
    ),
    ("/properties/control", "control: { zzzz: 1 }"),
    ("/properties/log", "log: { zzzz: 1 }"),
    ("/properties/log/properties/decisions", "log: { decisions: { zzzz: 1 } }"),
    ("/$defs/store", "store: { zzzz: 1 }"),
    ("/$defs/store/properties/memory", "store: { memory: { zzzz: 1 } }"),
    ("/$defs/redis", "store: { redis: { zzzz: 1 } }"),
    ("/$defs/redis/properties/tls", "store: { redis: { tls: { zzzz: 1 } } }"),
    ("/$defs/resources/items", "resources: [{ zzzz: 1 }]"),
    ("/$defs/queues/additionalProperties", "queues: { a: { zzzz: 1 } }"),
    ("/$defs/queues/additionalProperties", "queues: { a: { kind: list, zzzz: 1 } }"),
    (
        "/$defs/queues/additionalProperties/properties/outcomes/then",
        "queues: { a: { outcomes: { zzzz: 1 } } }",
    ),
    ("/$defs/groups/additionalProperties", "groups: { a: { zzzz: 1 } }"),
    ("/$defs/overrides/items", "overrides: [{ zzzz: 1 }]"),
    ("/$defs/changes/additionalProperties", "overrides: [{ limits: { a: { zzzz: 1 } } }]"),
    ("/$defs/access", "access: { zzzz: 1 }"),
    ("/$defs/access", "strategies: { a: { access: { zzzz: 1 } } }"),
    ("/$defs/strategies/additionalProperties", "strategies: { a: { zzzz: 1 } }"),
    ("/$defs/concurrency", "strategies: { a: { concurrency: { zzzz: 1 } } }"),
    ("/$defs/concurrency", "strategies: { a: { concurrency: { adaptive: vegas, zzzz: 1 } } }"),
    ("/$defs/sampling", "strategies: { a: { concurrency: { adaptive: aimd, sampling: { zzzz: 1 } } } }"),
    ("/$defs/partitions", "strategies: { a: { concurrency: { partitions: { zzzz: 1 } } } }"),
    ("/$defs/limits/items", "strategies: { a: { limits: [{ zzzz: 1 }] } }"),
    ("/$defs/approximate", "strategies: { a: { approximate: { zzzz: 1 } } }"),
    ("/$defs/hold", "strategies: { a: { hold: { zzzz: 1 } } }"),
    ("/$defs/ban", "strategies: { a: { limits: [{ ban: { zzzz: 1 } }] } }"),
    ("/$defs/uniform", "strategies: { a: { limits: [{ uniform: { zzzz: 1 } }] } }"),
    ("/$defs/bucket", "strategies: { a: { limits: [{ token_bucket: { zzzz: 1 } }] } }"),
    ("/$defs/bucket", "strategies: { a: { limits: [{ gcra: { zzzz: 1 } }] } }"),
    ("/$defs/bucket", "strategies: { a: { limits: [{ leaky_bucket: { zzzz: 1 } }] } }"),
    ("/$defs/leaky_queue", "strategies: { a: { limits: [{ leaky_queue: { zzzz: 1 } }] } }"),
    ("/$defs/warm_up", "strategies: { a: { limits: [{ warm_up: { zzzz: 1 } }] } }"),
    ("/$defs/fixed_window", "strategies: { a: { limits: [{ fixed_window: { zzzz: 1 } }] } }"),
    ("/$defs/fixed_window", "strategies: { a: { limits: [{ fixed_window: { calendar: day, zzzz: 1 } }] } }"),
    ("/$defs/interval_refill", "strategies: { a: { limits: [{ interval_refill: { zzzz: 1 } }] } }"),
    ("/$defs/sliding_window", "strategies: { a: { limits: [{ sliding_window: { zzzz: 1 } }] } }"),
    ("/$defs/bucketed_window", "strategies: { a: { limits: [{ bucketed_window: { zzzz: 1 } }] } }"),
    ("/$defs/sliding_log", "strategies: { a: { limits: [{ sliding_log: { zzzz: 1 } }] } }"),
    ("/$defs/sliding_log", "overrides: [{ limits: { a: { sliding_log: { zzzz: 1 } } } }]"),
];

fn known_to_the_parser(text: &str) -> BTreeSet<String> {
    let errors = parse(text).unwrap_err();
    let line = errors.lines().find(|line| line.contains("zzzz: unknown key; known are: ")).expect(&errors);
    line.split_once("known are: ").unwrap().1.split(", ").map(str::to_owned).collect()
}

/// Keys that the parser knows only to say that they are for a later version.
fn is_for_later(key: &str) -> bool {
    let text = format!("strategies: {{ a: {{ limits: [{{ {key}: {{}} }}] }} }}");
    let errors = parse(&text).unwrap_err();
    // Permits are no algorithm of a limit, and a limit's error says where they go.
    ["is not supported yet", "in place of the strategy's `limits`"].iter().any(|it| errors.contains(it))
}

/// Finds the places of mappings without other keys in `value`.
pub(super) fn mappings(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        if key == "additionalProperties" && *inner == Value::Bool(false) {
            found.insert(path.to_owned());
        }
        mappings(inner, &format!("{path}/{key}"), found);
    }
}

#[test]
fn it_has_the_keys_of_the_parser() {
    let schema = schema();
    for (place, text) in MAPPINGS {
        let properties = schema.pointer(place).and_then(|mapping| mapping["properties"].as_object());
        let properties = properties.unwrap_or_else(|| panic!("no mapping at {place}"));
        let of_schema: BTreeSet<String> = properties.keys().cloned().collect();
        let mut of_parser = known_to_the_parser(text);
        of_parser.retain(|key| of_schema.contains(key) || !is_for_later(key));
        assert_eq!(of_schema, of_parser, "of {place}");
        let undescribed: Vec<_> =
            properties.iter().filter(|(_, key)| !key["description"].is_string()).collect();
        assert!(undescribed.is_empty(), "{undescribed:?} of {place}");
    }
    let mut found = BTreeSet::new();
    mappings(&schema, "", &mut found);
    let tried: BTreeSet<String> = MAPPINGS.iter().map(|(place, _)| (*place).to_owned()).collect();
    assert_eq!(found, tried, "a new mapping needs a line in MAPPINGS");
}
