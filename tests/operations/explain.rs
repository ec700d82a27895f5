//! `weir explain`: what would decide, and why, from the configuration alone.

mod approximate;
mod costs;
mod local;

use std::io::Write as _;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use weir_config::Config;
use weir_core::key::{KeySecret, Namespace, Subject, slot, write_key, write_tag};

use crate::support::command::{text, weir, weir_command};

const CONFIG: &str = r#"
strategies:
  feeding:
    limits:
      - { name: everyone, per: [resource], sliding_log: { limit: 100, window: 10s } }
      - { name: each, per: [resource, consumer], uniform: { interval: 10s } }
    access: { allow: [own-keeper] }
  regional: { limits: [{ name: region, per: [region], fixed_window: { limit: 3, window: 1m } }] }
resources:
  - { match: zoo/*, strategy: feeding, group: animals }
overrides:
  - { consumer: "gold-*", strategy: feeding, limits: { each: { token_bucket: { rate: 30/1m } } } }
  - { consumer: nobody, strategy: feeding, resource: zoo/lion, limits: { each: { fixed_window: { limit: 0, window: 1s } } } }
access: { deny: ["bot-*"] }
"#;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Exit code, stdout and stderr of `weir explain ARGS` with the configuration above.
fn explain(args: &[&str]) -> (Option<i32>, String, String) {
    let file = file(CONFIG);
    let out = weir(&[&["explain", "--config", file.path().to_str().unwrap()], args].concat());
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn explained(args: &[&str]) -> String {
    let (code, text, errors) = explain(args);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{args:?}");
    text
}

/// A time that follows from numbers is for people: it said 950400s and 3636s.
#[test]
fn times_have_two_units() {
    let file = file(
        "strategies:
  a: { limits: [{ name: x, per: [consumer], bucketed_window: { limit: 5, window: 1h, buckets: 100 } }] }
  b: { limits: [{ name: x, per: [consumer], token_bucket: { rate: 1/7h, burst: 33 } }] }
",
    );
    for (strategy, expected) in [("a", "full again 1h 1m after"), ("b", "full again 9d 15h after")] {
        let args = ["explain", "--config", file.path().to_str().unwrap(), "r", "c", "--strategy", strategy];
        let said = text(&weir(&args).stdout);
        assert!(said.contains(expected), "{said}");
    }
}

/// The text with the tag and what follows from it left out.
fn without_tag(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        match (line.split_once("weir:{"), line.split_once(", slot ")) {
            (Some((before, rest)), _) => out += &format!("{before}weir:{{*}}{}", &rest[5..]),
            (None, Some((before, _))) => out += &format!("{before}, slot …"),
            (None, None) => out += line,
        }
        out.push('\n');
    }
    out
}

#[test]
fn the_text_has_a_line_per_fact() {
    for (args, expected) in [
        (
            &["zoo/lion", "bob"][..],
            "\
resource  \"zoo/lion\" matches `zoo/*`
group     \"animals\": its resources share a shard
strategy  `feeding`, the resource's own
access    \"bob\" is on no list
override  none
failure   on_store_failure: error
tag       [resource], slot …
limits    all are charged, or none is
  everyone per [resource]: sliding_log: { limit: 100, window: 10s }; full again 10s after being emptied
    key    weir:{*}Lfeeding:everyone|Rzoo/lion
    state  log, 172 to 2156 bytes in the memory store, about 200 to 1704 on Redis, from the first call on to the worst
  each per [resource, consumer]: uniform: { interval: 10s }; full again 10s after being emptied
    key    weir:{*}Bfeeding:each|Rzoo/lion|Cbob
    state  bucket, 60 bytes in the memory store, about 136 on Redis
",
        ),
        (
            &["shop", "gold-bob", "--strategy", "feeding"],
            "\
resource  \"shop\" matches no pattern
strategy  `feeding`, named by the request
access    \"gold-bob\" is on no list
override  `gold-*` on resources `*`
failure   on_store_failure: error
tag       [resource], slot …
limits    all are charged, or none is
  everyone per [resource]: sliding_log: { limit: 100, window: 10s }; full again 10s after being emptied
    key    weir:{*}Lfeeding:everyone|Rshop
    state  log, 172 to 2156 bytes in the memory store, about 200 to 1704 on Redis, from the first call on to the worst
  each per [resource, consumer]: token_bucket: { rate: 30/m, burst: 30 }; full again 1m after being emptied, by the override
    key    weir:{*}Bfeeding:each|Rshop|Cgold-bob
    state  bucket, 60 bytes in the memory store, about 136 on Redis
",
        ),
        (
            &["zoo/lion", "bot-7"],
            "\
resource  \"zoo/lion\" matches `zoo/*`
group     \"animals\": its resources share a shard
strategy  `feeding`, the resource's own
access    `bot-*` on the deny list matches \"bot-7\"
answer    denied; no limit is asked and nothing is charged
",
        ),
        (
            &["x", "--strategy", "regional", "--attribute", "region=e=u"],
            "\
resource  \"x\" matches no pattern
strategy  `regional`, named by the request
access    \"\" is on no list
override  none
failure   on_store_failure: error
tag       [region], slot …
limits    all are charged, or none is
  region per [region]: fixed_window: { limit: 3, window: 1m }; full again 1m after being emptied
    key    weir:{*}Wregional:region|region=e=u
    state  window, 60 bytes in the memory store, about 120 on Redis
",
        ),
    ] {
        assert_eq!(without_tag(&explained(args)), expected, "{args:?}");
    }
    let own = explained(&["zoo/lion", "own-keeper"]);
    assert!(own.contains("access    `own-keeper` on the strategy's own allow list matches"), "{own}");
    let nobody = explained(&["zoo/lion", "nobody"]);
    assert!(nobody.contains("override  `nobody` on resources `zoo/lion`"), "{nobody}");
    assert!(
        nobody.contains("fixed_window: { limit: 0, window: 1s }; nothing ever passes, by the override"),
        "{nobody}"
    );
}

#[test]
fn json_has_the_same_facts() {
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&explained(&[args, &["--output", "json"]].concat())).unwrap()
    };
    let gold = json(&["zoo/lion", "gold-bob"]);
    let expected = json!({
        "resource": "zoo/lion", "consumer": "gold-bob", "pattern": "zoo/*", "group": "animals",
        "strategy": "feeding", "strategy_named_by": "resource",
        "access": null,
        "override": { "consumer": "gold-*", "resource": "*" },
        "on_store_failure": "error", "local": null, "approximate": null, "tag": "[resource]", "slot": 6964, "part": null,
        "limits": [
            {
                "name": "everyone", "per": ["resource"], "limit": 100, "renewal_us": 10_000_000,
                "algorithm": "sliding_log: { limit: 100, window: 10s }",
                "engine": "log", "overridden": false,
                "key": "weir:{Ojwd}Lfeeding:everyone|Rzoo/lion",
                "state_bytes": { "one": 172, "most": 2156 },
                "redis_bytes": { "one": 200, "most": 1704 },
            },
            {
                "name": "each", "per": ["resource", "consumer"], "limit": 30, "renewal_us": 60_000_000,
                "algorithm": "token_bucket: { rate: 30/m, burst: 30 }",
                "engine": "bucket", "overridden": true,
                "key": "weir:{Ojwd}Bfeeding:each|Rzoo/lion|Cgold-bob",
                "state_bytes": { "one": 60, "most": 60 },
                "redis_bytes": { "one": 136, "most": 136 },
            },
        ],
        "hold": null,
        "concurrency": null,
    });
    assert_eq!(gold, expected);
    let bot = json(&["zoo/lion", "bot-7"]);
    assert_eq!(bot["access"], json!({ "list": "deny", "entry": "bot-*", "of": "all" }));
    assert_eq!([&bot["override"], &bot["limits"]], [&Value::Null, &Value::Null]);
    let keeper = json(&["zoo/lion", "own-keeper"]);
    assert_eq!(keeper["access"], json!({ "list": "allow", "entry": "own-keeper", "of": "strategy" }));
}

#[test]
fn what_cannot_be_decided_exits_1_and_says_why() {
    for (args, reason) in [
        (
            &["zoo/lion", "bob", "--strategy", "feding"][..],
            "there is no strategy `feding` (similar: feeding)",
        ),
        (&["shop", "bob"], "no pattern of the configuration matches `shop`"),
        (&["zoo/lion"], "a limit of strategy `feeding` counts by consumer"),
        (
            &["x", "bob", "--strategy", "regional", "--attribute", "zone=1"],
            "attributes is without \"region\": it must be 1 to 512 bytes, because limit `region` of strategy \
             `regional` counts by it",
        ),
    ] {
        let (code, out, errors) = explain(args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert!(errors.starts_with("error: ") && errors.contains(reason), "{errors}");
    }
    let broken = file("overrides: [{ }]\n");
    let out = weir(&["explain", "x", "bob", "--config", broken.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains(":1:13: overrides[0].consumer: is missing"), "{}", text(&out.stderr));
}

#[test]
fn wrong_usage_exits_2() {
    for args in [&["x", "bob", "--attribute", "region"][..], &["x", "bob", "--attribute", "=eu"], &[]] {
        let (code, _, errors) = explain(args);
        assert_eq!(code, Some(2), "{args:?}");
        assert!(!errors.is_empty());
    }
}

#[test]
fn without_a_file_the_example_is_explained() {
    let out = weir(&["explain", "zewtopia.com/tigerfeeding", "bob"]);
    assert_eq!(out.status.code(), Some(0));
    assert!(text(&out.stdout).contains("strategy  `tiger-feeding`, the resource's own"));
}

/// Tag, slot and key are those of the secret that the nodes have.
#[test]
fn the_slot_follows_from_the_secret() {
    let file = file(CONFIG);
    let args = ["explain", "zoo/lion", "bob", "--output", "json", "--config", file.path().to_str().unwrap()];
    for secret in ["of all nodes", "another one"] {
        let out = weir_command(&args).env("WEIR_KEY_SECRET", secret).output().unwrap();
        let said: Value = serde_json::from_slice(&out.stdout).unwrap();
        let config = Config::parse(CONFIG, "weir.yaml", &weir::features::overrides()).unwrap();
        let strategy = &config.rules.strategies()[0];
        let subject =
            Subject { resource: "zoo/lion", consumer: "bob", group: Some("animals"), ..Subject::default() };
        let mut tag = Vec::new();
        write_tag(&mut tag, strategy, &subject);
        let tag = KeySecret::from_text(secret).hash(&tag);
        let mut key = Vec::new();
        write_key(&mut key, Namespace::DEFAULT.prefix(tag), strategy, &strategy.limits()[0], &subject);
        assert_eq!(said["slot"], slot(tag));
        assert_eq!(said["limits"][0]["key"], String::from_utf8(key).unwrap());
    }
}

/// A printed algorithm can be written into a configuration, and means the same there.
#[test]
fn algorithms_are_printed_as_a_configuration_has_them() {
    for algorithm in [
        "uniform: { interval: 250ms }",
        "token_bucket: { rate: 50/s, burst: 100 }",
        "token_bucket: { rate: 7/m, burst: 7 }",
        "token_bucket: { rate: 1/3d, burst: 9 }",
        "fixed_window: { limit: 1000, window: 1h }",
        "fixed_window: { limit: 5, window: 90s, anchored: true, count_denied: true }",
        "fixed_window: { limit: 5, window: 90s, spread: true }",
        "fixed_window: { limit: 5, calendar: day, offset: \"-05:30\" }",
        "fixed_window: { limit: 5, calendar: month, offset: \"+02:00\" }",
        "fixed_window: { limit: 5, calendar: month, offset: \"-11:00\" }",
        "interval_refill: { capacity: 10, refill: 3, period: 2m, aligned: true }",
        "sliding_window: { limit: 1000, window: 1w }",
        "bucketed_window: { limit: 9, window: 1m, buckets: 60 }",
        "bucketed_window: { limit: 9, window: 1m, buckets: 60, expire: 2h }",
        "bucketed_window: { limit: 9, window: 1m, buckets: 1, strict: false }",
        "sliding_log: { limit: 10, window: 1h, count_denied: true, min_gap: 2s }",
    ] {
        let config = |algorithm: &str| {
            format!("strategies: {{ a: {{ limits: [{{ name: l, per: [consumer], {algorithm} }}] }} }}")
        };
        let limit = |text: &str| {
            let config = Config::parse(text, "weir.yaml", &weir::features::overrides()).unwrap();
            config.rules.strategies()[0].limits()[0].algorithm
        };
        let written = file(&config(algorithm));
        let out = weir(&[
            "explain",
            "x",
            "bob",
            "--strategy",
            "a",
            "--output",
            "json",
            "--config",
            written.path().to_str().unwrap(),
        ]);
        let said: Value = serde_json::from_slice(&out.stdout).unwrap();
        let said = said["limits"][0]["algorithm"].as_str().unwrap();
        assert_eq!(limit(&config(said)), limit(&config(algorithm)), "{algorithm} is printed as {said}");
    }
}

/// docs/algorithms.md has a table of what keys take in the memory store, which another test measures.
#[test]
fn a_state_is_as_large_as_documented() {
    const TOLERANCE: f64 = 0.2;
    let table = include_str!("../../docs/algorithms.md").split_once("\n| state |").unwrap().1;
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 9);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, algorithm, calls, memory, _] = cells[..] else { panic!("five cells: {row}") };
        let algorithm = algorithm.trim_matches('`');
        let written = file(&format!(
            "strategies: {{ a: {{ limits: [{{ name: l, per: [consumer], {algorithm} }}] }} }}"
        ));
        let path = written.path().to_str().unwrap();
        let out = weir(&["explain", "x", "bob", "--strategy", "a", "--output", "json", "--config", path]);
        let said: Value = serde_json::from_slice(&out.stdout).unwrap();
        let bytes = &said["limits"][0]["state_bytes"];
        let bytes = bytes[if calls == "1" { "one" } else { "most" }].as_f64().unwrap();
        let documented: f64 = memory.replace(',', "").parse().unwrap();
        assert!((bytes - documented).abs() <= TOLERANCE * documented, "{row}: {bytes}");
    }
}

/// Reservations that a log holds have a key of their own.
#[test]
fn a_held_log_has_two_keys() {
    let file = file(
        "strategies: { log: { limits: [{ name: each, per: [consumer], sliding_log: { limit: 3, window: 10s, hold: true } }] } }",
    );
    let args = ["explain", "r", "bob", "--strategy", "log", "--config", file.path().to_str().unwrap()];
    let said = without_tag(&text(&weir(&args).stdout));
    let keys = "    key    weir:{*}Llog:each|Cbob\n    held   weir:{*}Hlog:each|Cbob\n";
    assert!(said.contains(keys), "{said}");
    let out = weir(&[&args[..], &["--output", "json"]].concat());
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(said["limits"][0]["held_key"].as_str().unwrap().ends_with("}Hlog:each|Cbob"), "{said}");
}

const QUEUES: &str = r#"
store: { namespace: shop, redis: { nodes: ["redis://127.0.0.1:6379"] } }
queues:
  orders: { capacity: 100, rate: 10/1s, max_deliveries: 3 }
  letters: { capacity: 5, kind: list }
"#;

/// The keys of a queue, their slots, and the meaning of its numbers.
#[test]
fn a_queue_is_explained_with_its_keys() {
    let file = file(QUEUES);
    let explain = |queue: &str, more: &[&str]| {
        let path = file.path().to_str().unwrap();
        let out = weir(&[&["explain", "--config", path, "--queue", queue], more].concat());
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let tag = weir_core::key::queue_tag(&KeySecret::BUILT_IN, "orders");
    let mut written = Vec::new();
    Namespace::new("shop").unwrap().prefix(tag).write(&mut written);
    let (prefix, slot) = (String::from_utf8(written).unwrap(), slot(tag));
    let (code, said, errors) = explain("orders", &[]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let expected = format!(
        "\
queue     `orders`, a stream: delivered at least once; an item holds its place until it is acked
holds     at most 100 items and 67108864 bytes of payload; when it is full, all items of a call are refused
leaves    10 items in 1s, evenly, whoever takes them
again     an item that is not acked within 30s; after 3 deliveries it goes to `orders:dead`
outcomes  kept for 1d, the newest 100000
tag       queue `orders`, slot {slot} of a Redis Cluster
  key     {prefix}Qorders:stream
  key     {prefix}Qorders:due
  key     {prefix}Qorders:meta
  key     {prefix}Qorders:outcomes
"
    );
    assert_eq!(said, expected);
    let (_, dead, _) = explain("orders:dead", &[]);
    assert!(dead.contains("the dead letters of `orders`") && dead.contains("Qorders:dead_meta"), "{dead}");
    assert!(!dead.contains("1s, evenly"), "{dead}");
    let (_, list, _) = explain("letters", &["--output", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&list["kind"], &list["capacity"], &list["rate"]), (&json!("list"), &json!(5), &Value::Null));
    assert_eq!(list["redis"]["keys"].as_array().unwrap().len(), 2);
    let (code, _, errors) = explain("order", &[]);
    assert!(
        code == Some(1) && errors.contains("no queue `order`") && errors.contains("`orders`"),
        "{errors}"
    );
}
