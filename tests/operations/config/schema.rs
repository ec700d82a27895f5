//! The schema says no less than the parser and, as far as a schema can, no more.

mod defaults;
mod documentation;
mod examples;
mod keys;
mod mutations;
mod refused;

use std::path::Path;
use std::process::Command;

use jsonschema::Validator;
use serde_json::Value;
use weir::features::schema;

use super::{parse, section};
use crate::support::certificates::Authority;
use crate::support::scratch;
use crate::support::yaml::document;

/// Every key there is, so that nothing of the schema goes without being tried; the files of `tls` and
/// the sentinels have a test of their own.
const FULL: &str = r#"
server:
  listen: 127.0.0.1:1
  listen_mode: "0666"
  admin: 127.0.0.1:2
  transport: fast
  workers: 1
  reflection: true
  admin_service: false
  ready_needs_store: true
  drain_delay: 10m
  drain_timeout: 1m30s
  answer_reserve: 10ms
  limits: { max_connections: 10, max_streams: 10, max_side_streams: 5, max_open_streams: 100, max_header_bytes: 16KiB, max_message_bytes: 65536, max_pending_resets: 1, max_local_resets: 1, max_buffered_bytes: 2MiB, handshake_timeout: 1s, first_message_timeout: 1s, keepalive_interval: 1s, keepalive_timeout: 1s, max_connection_age: 1h, max_connection_age_grace: 1s }
store:
  key_secret: secret
  namespace: shop
  redis: { nodes: ["redis://a:1", "redis://b"], topology: cluster, shards: 3, database: 0, deadline: 5ms, connect_timeout: 1s, max_waiting: 9, denials_max_age: 0s, local_budget: 1MiB, username: weir, password: secret }
strategies:
  all:
    single_slot: true
    on_store_failure: allow
    access: { allow: [keeper], deny: ["bot-*", "*"] }
    limits:
      - { name: a, per: [], uniform: { interval: 10s } }
      - { name: b, per: [resource], token_bucket: { rate: 30/1m, burst: 1_000 } }
      - { name: c, per: [consumer], gcra: { rate: 5/s, burst: 10 } }
      - { name: d, per: [resource, consumer, region], leaky_bucket: { rate: 5/s, burst: 10 } }
      - { name: e, per: [], fixed_window: { limit: 5, window: 1d, anchored: true, spread: false, count_denied: false } }
      - { name: f, per: [tenant], interval_refill: { capacity: 5, refill: 1, period: 1h, aligned: true } }
      - { name: g, per: [], sliding_log: { limit: 10_000, window: 1w, count_denied: false, min_gap: 1s } }
      - { name: h, per: [], sliding_window: { limit: 1_000_000_000, window: 30d } }
  more:
    on_store_failure: { local: { share: 1/4, when_full: allow } }
    limits:
      - { name: a, per: [], bucketed_window: { limit: 5, window: 1h, buckets: 60, strict: false } }
      - { name: b, per: [], fixed_window: { limit: 5, calendar: month, offset: "-05:30", count_denied: true } }
    single_slot: true
  counted:
    approximate: { max_over: 50, nodes: 10, sync: 200ms }
    limits: [{ name: a, per: [consumer], fixed_window: { limit: 100, window: 1m } }]
resources:
  - { match: "a/*", strategy: all, group: one }
  - { match: "b/*", strategy: all, group: two }
groups: { one: { apart_from: [two] } }
overrides:
  - { consumer: "gold-*", strategy: all, resource: a/b, limits: { c: { gcra: { rate: 50/s } }, d: { uniform: { interval: 1s } } } }
access: { allow: [keeper], deny: [mallory] }
messages: { limited: "in {wait}", never: "{cost}" }
"#;

/// The same with the other store.
fn full_on_memory() -> String {
    let line = |begin: &str| FULL.lines().find(|line| line.starts_with(begin)).unwrap();
    // The memory store does not go away.
    let text = FULL.replace(line("groups:"), "").replace(line("    on_store_failure: { local:"), "");
    let text = text.replace(line("    approximate:"), "");
    text.replace(line("  redis:"), "  memory: { budget: 512MiB, when_full: refuse, share: 64MiB }")
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

/// Returns the mistakes that the schema finds, as an editor would show them.
fn mistakes(validator: &Validator, instance: &Value) -> Vec<String> {
    validator.iter_errors(instance).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn it_is_a_schema_and_the_program_prints_it() {
    assert!(jsonschema::meta::is_valid(&schema()));
    let printed = Command::new(env!("CARGO_BIN_EXE_weir")).arg("schema").output().unwrap();
    assert!(printed.status.success());
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed, weir::features::schema());
    assert!(jsonschema::meta::is_valid(&printed));
    // With the sections of features it says no less of the others.
    for (name, section) in schema()["properties"].as_object().unwrap() {
        assert_eq!(&printed["properties"][name], section, "{name}");
    }
}

/// A file as `check` and an editor judge it.
fn judge(validator: &Validator, text: &str) -> (bool, bool) {
    (parse(text).is_ok(), mistakes(validator, &document(text).unwrap()).is_empty())
}

/// Files whose certificates and passwords must be there to be read.
#[test]
fn what_names_files_is_taken_by_both() {
    let authority = Authority::create();
    let issued = authority.issue("weir", &["weir"]);
    let secret = scratch::dir("schema-");
    std::fs::write(secret.path().join("password"), "secret").unwrap();
    let show = |path: &Path| path.display().to_string();
    let (ca, cert, key) = (show(&authority.ca_file()), show(&issued.cert), show(&issued.key));
    let password = show(&secret.path().join("password"));
    let redis = |inner: &str| section(&format!("store: {{ redis: {{ nodes: [\"rediss://a\"], {inner} }} }}"));
    let validator = validator();
    for (inner, good) in [
        (format!("tls: {{ ca_file: {ca}, cert_file: {cert}, key_file: {key} }}"), true),
        (format!("tls: {{ ca_file: {ca} }}, username: weir, password_file: {password}"), true),
        ("topology: sentinel, master_name: mymaster".to_owned(), true),
        (
            format!(
                "topology: sentinel, master_name: m, sentinel_username: s, sentinel_password_file: {password}"
            ),
            true,
        ),
        ("topology: sentinel, master_name: m, sentinel_password: s".to_owned(), true),
        ("password_command: [/bin/token, a, a], database: 3".to_owned(), true),
        ("topology: sentinel, master_name: m, sentinel_password_command: [/bin/token]".to_owned(), true),
        (format!("tls: {{ ca_file: {ca}, check_host_name: false }}"), true),
        ("password_command: [/bin/token], password: p".to_owned(), false),
        (format!("password_command: [/bin/token], password_file: {password}"), false),
        ("password_command: []".to_owned(), false),
        ("sentinel_password_command: [/bin/token]".to_owned(), false),
        ("topology: cluster, database: 1".to_owned(), false),
        (format!("tls: {{ cert_file: {cert} }}"), false),
        (format!("tls: {{ key_file: {key} }}"), false),
        (format!("password: secret, password_file: {password}"), false),
        ("topology: sentinel".to_owned(), false),
        ("master_name: mymaster".to_owned(), false),
        ("topology: cluster, sentinel_password: s".to_owned(), false),
    ] {
        assert_eq!(judge(&validator, &redis(&inner)), (good, good), "{inner}: the parser, the schema");
    }
}
