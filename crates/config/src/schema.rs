//! The configuration as a JSON Schema (draft 2020-12), for editors and other programs.
//!
//! It accepts everything that the parser accepts. The parser rejects more, which no schema can express: references to
//! unknown strategies, scopes without a common field, incompatible parameters. Tests compare both: the keys of every
//! mapping, the defaults, every example, and mutations of them.
//!
//! Settings come from the table of settings; keys of strategies are lines in `rules` and `service`.

mod kinds;
mod rules;
mod service;

use serde_json::{Map, Value, json};
use weir_core::algorithm::{MAX_ENTRIES, MAX_LIMITS};
use weir_core::key::{MAX_NAMESPACE, MAX_PART};
use weir_core::strategy::{MAX_NAME, MAX_PARTITIONS};
use weir_units::CEILING;

pub(super) use self::kinds::section_of;
use self::kinds::{duration, mapping, rate, section, share};
use self::rules::{
    ACCESS, ALGORITHMS, APPROXIMATE, BAN, BUCKET, BUCKETED_WINDOW, CONCURRENCY, DEBT, FIXED_WINDOW, GROUP,
    HOLD, INTERVAL_REFILL, LEAKY_QUEUE, LIMIT, LOCAL, NEAR, OVERRIDE, PARTITIONS, RESOURCE, SAMPLING,
    SLIDING_LOG, SLIDING_WINDOW, STRATEGY, UNIFORM, WARM_UP,
};
use self::service::{AUTHORIZE, FORWARDED, IDENTITY, JWT, ROOT};

use super::authorize::MAX_RULES;
use super::callers::MAX_CALLER;
use super::concurrency::adaptive_keys;
use super::costs::MAX_COST_NAME;
use super::fields::MAX_PATH;
use super::identity::{MAX_ISSUERS, MAX_NETWORKS, MAX_TRUST_DOMAINS};
use super::table::{RedisConfig, TlsConfig, store as store_keys};

/// Returns the schema of a configuration file.
#[must_use]
pub fn schema() -> Value {
    let mut schema = mapping(ROOT);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Configuration of Weir");
    schema["type"] = json!("object");
    // Sections of features that are enough add themselves.
    schema["anyOf"] = json!([{ "required": ["strategies"] }]);
    schema["$defs"] = definitions();
    schema
}

/// Returns the regular expression of a name.
pub(super) fn name_pattern() -> String {
    format!("^[A-Za-z0-9._/-]{{1,{MAX_NAME}}}$")
}

fn definitions() -> Value {
    let name = name_pattern();
    let text = json!(["string", "number", "boolean"]);
    let mut definitions = json!({
        "duration": {
            "description": "Whole numbers with units from large to small: 10s, 250ms, 1m30s (us, ms, s, m, h, d, w).",
            "type": "string", "minLength": 2, "pattern": duration(),
        },
        "rate": {
            "description": "COUNT/DURATION, such as 30/1m or 5/s.",
            "type": "string", "pattern": rate(),
        },
        "name": { "type": text, "pattern": name },
        "namespace": { "type": text, "pattern": format!("^[a-z0-9-]{{1,{MAX_NAMESPACE}}}$") },
        "reference": { "type": text, "pattern": name },
        "part": { "type": text, "minLength": 1, "maxLength": MAX_PART },
        "pattern": { "type": text, "minLength": 1, "maxLength": MAX_PART, "pattern": "^[^*]*\\*?$" },
        "field": { "type": ["string", "boolean"], "pattern": "^[a-z][a-z0-9_-]{0,63}$" },
        "store": store(),
        "redis": redis(),
        "server_tls": server_tls(),
        "strategies": {
            "type": "object", "minProperties": 1,
            "propertyNames": { "pattern": name },
            "additionalProperties": strategy(),
        },
        "failure_policy": { "oneOf": [
            { "enum": ["allow", "deny", "error"] },
            {
                "type": "object", "required": ["local"], "additionalProperties": false,
                "properties": { "local": mapping(LOCAL) },
            },
        ] },
        "approximate": mapping(APPROXIMATE),
        "concurrency": concurrency(),
        "sampling": mapping(SAMPLING),
        "partitions": mapping(PARTITIONS),
        "shares": {
            "type": "object", "minProperties": 1, "maxProperties": MAX_PARTITIONS,
            "propertyNames": { "minLength": 1, "maxLength": MAX_PART },
            "additionalProperties": share(),
        },
        "ban": mapping(BAN),
        "hold": mapping(HOLD),
        "cost": { "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": CEILING - 1 },
            { "type": "string", "maxLength": MAX_COST_NAME, "pattern": "^[0-9._-]*[A-Za-z][A-Za-z0-9._-]*$" },
        ] },
        "limits": { "type": "array", "minItems": 1, "maxItems": MAX_LIMITS, "items": limit() },
        "resources": { "type": ["array", "null"], "items": mapping(RESOURCE) },
        "groups": {
            "type": ["object", "null"],
            "propertyNames": { "minLength": 1, "maxLength": MAX_PART },
            "additionalProperties": mapping(GROUP),
        },
        "overrides": { "type": ["array", "null"], "items": mapping(OVERRIDE) },
        "changes": {
            "type": "object", "minProperties": 1,
            "propertyNames": { "pattern": name },
            "additionalProperties": change(),
        },
        "access": mapping(ACCESS),
    });
    for more in [algorithm_definitions(), access_definitions()] {
        for (name, definition) in more.as_object().into_iter().flatten() {
            definitions[name] = definition.clone();
        }
    }
    definitions
}

fn algorithm_definitions() -> Value {
    json!({
        "uniform": mapping(UNIFORM),
        "bucket": bucket(),
        "leaky_queue": leaky_queue(),
        "warm_up": mapping(WARM_UP),
        "max_debt": { "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": CEILING - 1 },
            { "type": "string", "pattern": "^([0-9]+(_[0-9]+)+|unlimited)$" },
        ] },
        "fixed_window": fixed_window(),
        "interval_refill": mapping(INTERVAL_REFILL),
        "sliding_window": mapping(SLIDING_WINDOW),
        "bucketed_window": bucketed_window(),
        "sliding_log": sliding_log(),
    })
}

/// Identity and rights.
fn access_definitions() -> Value {
    let text = json!(["string", "number", "boolean"]);
    json!({
        "authorize": { "type": ["array", "null"], "maxItems": MAX_RULES, "items": mapping(AUTHORIZE) },
        "callers": {
            "type": "array", "minItems": 1, "items": { "type": text, "minLength": 1, "maxLength": MAX_CALLER },
        },
        "entries": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/entry" } },
        "entry": { "type": text, "minLength": 1, "maxLength": MAX_PART, "pattern": "^[^*]*\\*?$" },
        "identity": mapping(IDENTITY),
        "jwt": { "type": ["array", "null"], "maxItems": MAX_ISSUERS, "items": mapping(JWT) },
        "forwarded": mapping(FORWARDED),
        "trust_domains": {
            "type": ["object", "null"], "maxProperties": MAX_TRUST_DOMAINS,
            "propertyNames": { "pattern": "^[a-z0-9._-]{1,255}$" },
            "additionalProperties": { "type": text, "minLength": 1, "maxLength": MAX_PATH },
        },
        "networks": { "type": ["array", "null"], "maxItems": MAX_NETWORKS, "items": { "type": "string" } },
    })
}

fn store() -> Value {
    let mut store = section(store_keys::rows);
    store["not"] = json!({ "type": "object", "required": ["memory", "redis"] });
    store
}

/// The section `store.redis`. Certificate and key require each other. A password and its file exclude each other.
/// `shards` needs a cluster. Sentinels require `master_name`, and without them neither it nor their login is allowed.
fn redis() -> Value {
    let mut redis = section(RedisConfig::rows);
    redis["properties"]["tls"]["dependentRequired"] =
        json!({ "cert_file": ["key_file"], "key_file": ["cert_file"] });
    redis["allOf"] = json!([
        at_most_one(["password", "password_file", "password_command"]),
        at_most_one(["sentinel_password", "sentinel_password_file", "sentinel_password_command"]),
        {
            "if": { "properties": { "topology": { "const": "cluster" } }, "required": ["topology"] },
            "then": { "properties": { "database": { "maximum": 0 } } },
        },
        {
            "if": { "properties": { "topology": { "const": "cluster" } }, "required": ["topology"] },
            "else": { "properties": { "shards": false } },
        },
    ]);
    redis["if"] = json!({ "properties": { "topology": { "const": "sentinel" } }, "required": ["topology"] });
    redis["then"] = json!({ "required": ["master_name"] });
    redis["else"] = json!({ "properties": {
        "master_name": false, "sentinel_username": false, "sentinel_password": false,
        "sentinel_password_file": false, "sentinel_password_command": false,
    } });
    redis
}

fn at_most_one([one, other, third]: [&str; 3]) -> Value {
    let both = |one: &str, other: &str| json!({ "required": [one, other] });
    json!({ "not": { "anyOf": [both(one, other), both(one, third), both(other, third)] } })
}

/// TLS of a port. What concerns client certificates needs the authorities and `client_auth`. YAML reads a version
/// without quotes as a number.
fn server_tls() -> Value {
    let mut tls = section(TlsConfig::rows);
    tls["dependentRequired"] = json!({
        "client_ca_file": ["client_auth"], "client_crl_file": ["client_ca_file"], "client_crl": ["client_crl_file"],
    });
    tls["if"] = json!({ "properties": { "client_auth": { "const": "none" } } });
    tls["else"] = json!({ "required": ["client_ca_file"] });
    tls["properties"]["min_version"]["enum"] = json!(["1.2", "1.3", 1.2, 1.3]);
    tls
}

/// A strategy: rate limits or permits.
fn strategy() -> Value {
    let mut strategy = mapping(STRATEGY);
    strategy["type"] = json!("object");
    strategy["oneOf"] = json!([
        { "required": ["limits"] },
        { "required": ["concurrency"], "properties": { "approximate": false, "single_slot": false, "max_reservation": false, "shadow": false, "hold": false } },
    ]);
    strategy
}

/// A concurrency limit, fixed or adaptive.
fn concurrency() -> Value {
    let mut concurrency = mapping(CONCURRENCY);
    let none: Map<String, Value> = adaptive_keys().map(|key| (key.to_owned(), json!(false))).collect();
    concurrency["if"] = json!({ "required": ["adaptive"] });
    concurrency["then"] = json!({ "properties": { "limit": false } });
    concurrency["else"] = json!({ "required": ["limit"], "properties": none });
    concurrency
}

fn limit() -> Value {
    one_algorithm(mapping(LIMIT))
}

/// An override changes an algorithm, or `near_limit` alone, or both.
fn change() -> Value {
    let mut change = one_algorithm(mapping(&[]));
    let near_alone = json!({ "required": [NEAR.name], "maxProperties": 1 });
    if let Some(ways) = change["oneOf"].as_array_mut() {
        ways.push(near_alone);
    }
    change
}

/// Adds the algorithms, of which exactly one is required.
fn one_algorithm(mut limit: Value) -> Value {
    for key in ALGORITHMS.iter().chain([&DEBT, &NEAR]) {
        limit["properties"][key.name] = key.described();
    }
    limit["type"] = json!("object");
    limit["oneOf"] = ALGORITHMS.iter().map(|key| json!({ "required": [key.name] })).collect();
    limit
}

/// `max_cost` is a key of buckets with charge-after only.
fn bucket() -> Value {
    let mut bucket = mapping(BUCKET);
    bucket["if"] =
        json!({ "properties": { "charge_after": { "const": true } }, "required": ["charge_after"] });
    bucket["else"] = json!({ "properties": { "max_cost": false } });
    bucket
}

fn leaky_queue() -> Value {
    let mut queue = mapping(LEAKY_QUEUE);
    queue["if"] = json!({ "properties": { "nodelay": { "const": true } }, "required": ["nodelay"] });
    queue["then"] = json!({ "properties": { "delay": false } });
    queue
}

/// A window has a calendar period or a length. With a length, at most one kind of alignment is allowed.
fn fixed_window() -> Value {
    let mut window = mapping(FIXED_WINDOW);
    window["if"] = json!({ "required": ["calendar"] });
    window["then"] = json!({ "properties": { "window": false, "anchored": false, "spread": false } });
    window["else"] = json!({ "required": ["window"], "properties": { "offset": false } });
    let both = json!({ "anchored": { "const": true }, "spread": { "const": true } });
    window["not"] = json!({ "properties": both, "required": ["anchored", "spread"] });
    window
}

/// The buckets are given by number or by their number per second.
fn bucketed_window() -> Value {
    let mut window = mapping(BUCKETED_WINDOW);
    window["oneOf"] = json!([{ "required": ["buckets"] }, { "required": ["accuracy"] }]);
    window
}

/// A log that counts denied attempts keeps one unit more than the limit, so its maximum limit is lower. It cannot have
/// `hold`, without which there is no `max_held`.
fn sliding_log() -> Value {
    let mut log = mapping(SLIDING_LOG);
    log["if"] = json!({ "properties": { "count_denied": { "const": true } }, "required": ["count_denied"] });
    let held = json!({ "properties": { "hold": { "const": true } }, "required": ["hold"] });
    log["dependentSchemas"] = json!({ "max_held": held });
    log["then"] =
        json!({ "properties": { "limit": { "not": { "const": MAX_ENTRIES } }, "hold": { "const": false } } });
    log
}
