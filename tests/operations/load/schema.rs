//! The names in the report. Programs that read it depend on them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{BURST, load};
use crate::support::command::{text, weir};
use crate::support::server::{Server, config};

/// Every name in the report, with the kind of its value.
fn names(value: &Value, path: &str, out: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names(value, &format!("{path}.{name}"), out);
            }
            return;
        }
        Value::Array(items) => return items.iter().for_each(|item| names(item, &format!("{path}[]"), out)),
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
    };
    out.insert(path.to_owned(), kind);
}

#[test]
fn the_reports_names_are_those_that_are_documented() {
    let server = Server::start(config());
    let this = std::process::id().to_string();
    let more =
        ["--rate", "500", "--duration", "100ms", "--warm-up", "0s", "--spread", "zipf", "--pid", &this];
    let (report, _) = load(&server, &[&BURST[..], &more].concat());
    let mut found = BTreeMap::new();
    names(&report, "", &mut found);
    let latency = ["min", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "max"];
    let latencies = |of: &'static str| latency.map(|name| (format!("{of}.{name}"), "number"));
    let strings =
        [".server", ".mode", ".protocol", ".pace", ".spread"].map(|name| (name.to_owned(), "string"));
    let numbers = [
        ".schema",
        ".batch",
        ".connections",
        ".in_flight",
        ".threads",
        ".keys",
        ".zipf_exponent",
        ".cost",
        ".warm_up_s",
        ".warm_up_calls",
        ".elapsed_s",
        ".calls.made",
        ".calls.per_s",
        ".decisions.asked",
        ".decisions.allowed",
        ".decisions.denied",
        ".decisions.degraded",
        ".decisions.failed",
        ".decisions.per_s",
        ".open_loop.rate",
        ".open_loop.missed",
        ".cpu.generator_us_per_call",
        ".cpu.servers[].pid",
        ".cpu.servers[].us_per_decision",
        ".cpu.servers[].cores",
        ".cpu.servers[].rss_bytes",
        ".cpu.servers[].rss_growth_bytes",
    ];
    let expected: BTreeMap<_, _> = (strings.into_iter())
        .chain(numbers.map(|name| (name.to_owned(), "number")))
        .chain(latencies(".latency_us"))
        .chain(latencies(".open_loop.late_us"))
        .chain([(".ended_early".to_owned(), "null")])
        .collect();
    assert_eq!(found, expected);
    assert_eq!(report["schema"], 1);
    let documented = include_str!("../../../docs/performance.md");
    for name in found.keys().flat_map(|path| path.split(['.', '['])).filter(|name| name.len() > 1) {
        assert!(documented.contains(&format!("`{name}`")), "docs/performance.md does not explain `{name}`");
    }
}

#[test]
fn people_read_a_page() {
    let server = Server::start(config());
    let address = server.grpc.to_string();
    let out = weir(
        &[
            &["load", "--server", &address, "--requests", "1000", "--warm-up", "0s", "--keys", "10"],
            &BURST[..],
        ]
        .concat(),
    );
    assert_eq!(out.status.code(), Some(0));
    let page = text(&out.stdout);
    for line in [
        &format!("{address}: unary, 8 connections, 128 in flight, 10 keys, "),
        "  allowed  50 (5.00 %)",
        "  denied   950 (95.00 %)",
        "  failed   0 (0.00 %)",
        "latency    p50 ",
        "generator: ",
    ] {
        assert!(page.contains(line), "{line:?} is missing in\n{page}");
    }
}
