//! `weir explain`: what would decide, and why, from the configuration alone.

use std::io::Write as _;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::cli::{text, weir};

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

#[test]
fn people_are_told_line_by_line() {
    for (args, expected) in [
        (
            &["zoo/lion", "bob"][..],
            "\
resource  \"zoo/lion\" matches `zoo/*`
group     \"animals\": its resources share a shard
strategy  `feeding`, the resource's own
access    \"bob\" is on no list
override  none
limits    all are charged, or none is
  everyone per [resource]: at most 100 at once, as new 10s after all of it is spent (log)
    weir:{*}:feeding:everyone:log:r8:zoo/lion
  each per [resource, consumer]: at most 1 at once, as new 10s after all of it is spent (bucket)
    weir:{*}:feeding:each:bucket:r8:zoo/lion:c3:bob
",
        ),
        (
            &["shop", "gold-bob", "--strategy", "feeding"],
            "\
resource  \"shop\" matches no pattern
strategy  `feeding`, named by the request
access    \"gold-bob\" is on no list
override  `gold-*` on resources `*`
limits    all are charged, or none is
  everyone per [resource]: at most 100 at once, as new 10s after all of it is spent (log)
    weir:{*}:feeding:everyone:log:r4:shop
  each per [resource, consumer]: at most 30 at once, as new 60s after all of it is spent (bucket), by the override
    weir:{*}:feeding:each:bucket:r4:shop:c8:gold-bob
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
limits    all are charged, or none is
  region per [region]: at most 3 at once, as new 60s after all of it is spent (window)
    weir:{*}:regional:region:window:region=3:e=u
",
        ),
    ] {
        assert_eq!(explained(args), expected, "{args:?}");
    }
    let own = explained(&["zoo/lion", "own-keeper"]);
    assert!(own.contains("access    `own-keeper` on the strategy's own allow list matches"), "{own}");
    let nobody = explained(&["zoo/lion", "nobody"]);
    assert!(nobody.contains("override  `nobody` on resources `zoo/lion`"), "{nobody}");
    assert!(nobody.contains("nothing ever passes (window), by the override"), "{nobody}");
}

#[test]
fn machines_are_told_the_same() {
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&explained(&[args, &["--output", "json"]].concat())).unwrap()
    };
    let gold = json(&["zoo/lion", "gold-bob"]);
    let expected = json!({
        "resource": "zoo/lion", "consumer": "gold-bob", "pattern": "zoo/*", "group": "animals",
        "strategy": "feeding", "strategy_named_by": "resource",
        "access": null,
        "override": { "consumer": "gold-*", "resource": "*" },
        "limits": [
            {
                "name": "everyone", "per": ["resource"], "limit": 100, "renewal_us": 10_000_000,
                "engine": "log", "overridden": false, "key": "weir:{*}:feeding:everyone:log:r8:zoo/lion",
            },
            {
                "name": "each", "per": ["resource", "consumer"], "limit": 30, "renewal_us": 60_000_000,
                "engine": "bucket", "overridden": true,
                "key": "weir:{*}:feeding:each:bucket:r8:zoo/lion:c8:gold-bob",
            },
        ],
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
            "there is no strategy `feding` (configured: feeding)",
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
