//! `server`, `store`, `resources` and `messages`: every bound, and the error for breaking it. `redis.rs` has
//! what only Redis uses.

use weir_config::{MemoryConfig, StoreConfig};
use weir_units::Micros;

use super::{STRATEGIES, accepted, parse, refused, refused_rows, section, values_refused};

#[test]
fn sections_and_keys() {
    refused_rows(
        section,
        r#"
server: 5 => 1:9: server: must be a mapping of keys, not a single value
server: [a] => 1:9: server: must be a mapping of keys, not a list
servr: {} => 1:1: servr: unknown key; did you mean `server`?
server: { lisen: x } => 1:11: server.lisen: unknown key; did you mean `listen`?
colour: blue
    1:1: colour: unknown key; known are: server, store, envoy, queues, strategies, resources, groups, overrides, access, authorize, messages, log, control, http, usage
server: { workers: 1, workers: 2 } => 1:23: server.workers: is given twice; the first is at 1:11
server: { ? [a] : 1 } => 1:13: server: a key must be a single word
"#,
    );
    refused(
        &[("server: {}\nstore: {}\nserver: {}", "3:1: server: is given twice; the first is at 1:1")],
        section,
    );
}

#[test]
fn addresses() {
    refused_rows(
        section,
        r#"
server: { listen: localhost:8081 }
    1:19: server.listen: "localhost:8081" is not an IP address with a port, such as 127.0.0.1:8081 or [::1]:8081, nor unix:PATH
server: { listen: 8081 }
    1:19: server.listen: "8081" is not an IP address with a port, such as 127.0.0.1:8081 or [::1]:8081, nor unix:PATH
server: { admin: "127.0.0.1:99999" }
    1:18: server.admin: "127.0.0.1:99999" is not an IP address with a port, such as 127.0.0.1:8081 or [::1]:8081
server: { listen: "[::1]:5", admin: "[::1]:5" }
    1:37: server.admin: [::1]:5 is the address of `listen` too; each needs its own
server: { admin: 127.0.0.1:8081 }
    1:18: server.admin: 127.0.0.1:8081 is the address of `listen` too; each needs its own
"#,
    );
}

#[test]
fn numbers_and_words() {
    values_refused(
        "1:20: server.workers",
        &[
            ("-1", " is not a whole number of at least 0"),
            ("1.5", " is not a whole number of at least 0"),
            ("1__0", " is not a whole number of at least 0"),
            ("99999999999999999999", " is too large: at most 18446744073709551615"),
        ],
        |workers| section(&format!("server: {{ workers: {workers} }}")),
    );
    refused_rows(
        section,
        r#"
server: { workers: "4" } => 1:20: server.workers: "4" is text because of its quotes; write a bare whole number
server: { workers: } => 1:11: server.workers: is empty; give it a value or remove it
server: { workers: [1] } => 1:20: server.workers: must be a single value, not a list
server: { workers: { a: 1 } } => 1:20: server.workers: must be a single value, not a mapping
server: { reflection: yes } => 1:23: server.reflection: "yes" is neither true nor false
server: { reflection: "true" } => 1:23: server.reflection: "true" is text because of its quotes; write it bare
"#,
    );
}

#[test]
fn durations() {
    let file = |value: &str| section(&format!("server: {{ drain_timeout: {value} }}"));
    let no_duration = " is not a duration; write whole numbers with units, such as 10s, 250ms or 1m30s (units: us, ms, s, m, h, d, w)";
    let disordered = ": units go from large to small, each at most once, as in 1m30s";
    let too_long = " is too long: a duration is at most 100 years";
    values_refused(
        "1:26: server.drain_timeout",
        &[
            ("10", " has no unit; write one of us, ms, s, m, h, d, w after it, such as 10s"),
            ("1.5s", no_duration),
            ("10 s", no_duration),
            ("10sec", " is not a duration; write 10s"),
            ("1s1m", disordered),
            ("1s1s", disordered),
            ("99999999999999w", too_long),
            ("99999999999999999999999s", too_long),
            ("s", no_duration),
            ("-1s", no_duration),
        ],
        file,
    );
    refused(&[(r#""""#, &format!(r#"1:26: server.drain_timeout: ""{no_duration}"#))], file);
}

#[test]
fn memory() {
    let no_size = " is not a size; write a whole number of bytes or with a unit, such as 512MiB (units: KiB, MiB, GiB, KB, MB, GB)";
    values_refused(
        "1:28: store.memory.budget",
        &[
            ("512 MiB", no_size),
            ("1.5GiB", no_size),
            ("99999999999GiB", " is too large: at most 18446744073709551615 bytes"),
        ],
        |size| section(&format!("store: {{ memory: {{ budget: {size} }} }}")),
    );
    refused_rows(
        section,
        r#"
store: { memory: { share: 65535 } }
    1:27: store.memory.share: 65535 bytes is out of bounds: it must be at least 64KiB and at most the budget, 536870912 bytes
store: { memory: { budget: 1MiB, share: 2MiB } }
    1:41: store.memory.share: 2097152 bytes is out of bounds: it must be at least 64KiB and at most the budget, 1048576 bytes
store: { memory: { budget: 1MiB, id_share: 513KiB } }
    1:44: store.memory.id_share: 525312 bytes is out of bounds: it must be at least 64KiB and at most half of the budget, 524288 bytes
store: { memory: {}, redis: { nodes: ["redis://a"] } }
    1:29: store.redis: there is a `memory` store too; a service has one store
"#,
    );
}

#[test]
fn the_secret_is_never_shown() {
    refused(
        &[
            (r#"store: { key_secret: "" }"#, "1:22: store.key_secret: must not be empty"),
            (
                "store: { key_secret: [hunter2] }",
                "1:22: store.key_secret: must be a single value, not a list",
            ),
        ],
        section,
    );
}

#[test]
fn namespaces() {
    let bound = "is no namespace: a namespace has 1 to 32 of the characters a-z 0-9 -";
    let long = "n".repeat(33);
    refused(
        &[
            ("store: { namespace: Shop }", &format!("1:21: store.namespace: \"Shop\" {bound}")),
            ("store: { namespace: \"\" }", &format!("1:21: store.namespace: \"\" {bound}")),
            ("store: { namespace: \"a:b\" }", &format!("1:21: store.namespace: \"a:b\" {bound}")),
            ("store: { namespace: \"*\" }", &format!("1:21: store.namespace: \"*\" {bound}")),
            (
                &format!("store: {{ namespace: {long} }}"),
                &format!("1:21: store.namespace: \"{long}\" {bound}"),
            ),
        ],
        section,
    );
    let config = accepted(&section("store: { namespace: 0-z, redis: { nodes: [\"redis://a\"] } }"));
    let StoreConfig::Redis(redis) = &config.store else { panic!("on Redis") };
    assert_eq!((config.namespace.as_str(), &redis.namespace), ("0-z", &config.namespace));
}

#[test]
fn messages() {
    refused_rows(
        section,
        r#"
messages: { limited: "{wait" } => 1:22: messages.limited: a brace has no partner after ""
messages: { limited: "wait}" } => 1:22: messages.limited: a brace has no partner after "wait"
messages: { limited: "{{wait}}" }
    1:22: messages.limited: "{{wait}" is not a placeholder here; known are: {wait}, {seconds}, {cost}, {limit}
messages: { limited: "in {weight}" }
    1:22: messages.limited: "{weight}" is not a placeholder here; known are: {wait}, {seconds}, {cost}, {limit}
messages: { never: "in {wait}" }
    1:20: messages.never: "{wait}" is not a placeholder here; known are: {cost}, {limit}
messages: { limited: [a] } => 1:22: messages.limited: must be a single value, not a list
"#,
    );
}

#[test]
fn resources() {
    refused_rows(
        section,
        r#"
resources: { match: a } => 1:12: resources: must be a list, with `-` before each item, not a mapping
resources: [a] => 1:13: resources[0]: must be a mapping of keys, not a single value
resources: [{ strategy: a }]
    1:13: resources[0].match: is missing; give it a resource, or the beginning of many and a final *
resources: [{ match: x }] => 1:13: resources[0].strategy: is missing; name one of `strategies`
resources: [{ match: x, strategy: b }] => 1:35: resources[0].strategy: there is no strategy "b"
resources: [{ match: "*x", strategy: a }]
    1:22: resources[0].match: "*x": a * can stand only at the end of a pattern
resources: [{ match: "x**", strategy: a }]
    1:22: resources[0].match: "x**": a * can stand only at the end of a pattern
resources: [{ match: "", strategy: a }] => 1:22: resources[0].match: must not be empty
resources: [{ match: x, strategy: a }, { match: x, strategy: a }]
    1:49: resources[1].match: "x" is given twice; the first is at 1:22
resources: [{ match: x, strategy: a, group: "" }] => 1:45: resources[0].group: must not be empty
resources: [{ match: x, strategy: a, grup: g }] => 1:38: resources[0].grup: unknown key; did you mean `group`?
"#,
    );
}

#[test]
fn durations_that_are_taken() {
    for (text, micros) in [
        ("0s", 0),
        ("1us", 1),
        ("250ms", 250_000),
        ("1_000ms", 1_000_000),
        ("\"10s\"", 10_000_000),
        ("1m30s", 90_000_000),
        ("1m2s3ms4us", 62_003_004),
        ("0w0d0h10m", 600_000_000),
    ] {
        let config = accepted(&section(&format!("server: {{ drain_timeout: {text} }}")));
        assert_eq!(config.server.drain_timeout, Micros(micros), "{text}");
    }
}

#[test]
fn sizes_that_are_taken() {
    for (text, budget) in [
        ("1048576", 1 << 20),
        ("1_048_576", 1 << 20),
        ("1024KiB", 1 << 20),
        ("512MiB", 512 << 20),
        ("2GiB", 2 << 30),
        ("2000KB", 2_000_000),
        ("512MB", 512_000_000),
        ("1GB", 1_000_000_000),
    ] {
        let config = accepted(&section(&format!("store: {{ memory: {{ budget: {text} }} }}")));
        let memory = MemoryConfig { budget, ..MemoryConfig::default() };
        assert_eq!(config.store, StoreConfig::Memory(memory), "{text}");
    }
}

#[test]
fn texts_are_bounded_in_length() {
    let long = |length: usize| "x".repeat(length);
    let shown = format!(" \"{}…\"", long(64));
    for (before, after, most, start) in [
        // Of the secret not even the beginning is shown.
        ("store: { key_secret: ", " }", 1024, "1:22: store.key_secret:".to_owned()),
        ("messages: { never: ", " }", 512, format!("1:20: messages.never:{shown}")),
        ("resources: [{ match: ", ", strategy: a }]", 512, format!("1:22: resources[0].match:{shown}")),
        (
            "resources: [{ match: x, strategy: a, group: ",
            " }]",
            512,
            format!("1:45: resources[0].group:{shown}"),
        ),
    ] {
        let file = |length| section(&format!("{before}{}{after}", long(length)));
        accepted(&file(most));
        let expected = format!("weir.yaml:{start} is {} bytes long: at most {most}", most + 1);
        assert_eq!(parse(&file(most + 1)).unwrap_err(), expected);
    }
    let file = |length| section(&format!("store: {{ redis: {{ nodes: [\"redis://{}\"] }} }}", long(length)));
    accepted(&file(253));
    assert!(parse(&file(254)).unwrap_err().ends_with("is not a host name or an IP address"));
}

/// A strategy with a mistake of its own still exists for those that refer to it.
#[test]
fn one_mistake_is_reported_once() {
    let file = STRATEGIES.replace("1s", "0s") + "\nresources: [{ match: x, strategy: a }]";
    assert_eq!(parse(&file).unwrap_err().lines().count(), 1);
}
