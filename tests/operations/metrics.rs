//! The metrics page: valid, complete from the start, and bounded whatever callers send.

mod denials;
#[cfg(all(feature = "leases", feature = "queues"))]
mod held;

use std::collections::BTreeSet;
use weir_testing::metrics;
use weir_testing::usage;

use weir_proto::v1::ShouldAllowRequest;

use crate::support::command::Serve;
use crate::support::server::{Server, ask, ask_under, config};

/// Names of series with their labels, without values.
fn series(page: &str) -> BTreeSet<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').expect("a sample has a value").0).collect()
}

fn value(page: &str, series: &str) -> f64 {
    metrics::value(page, series)
}

#[test]
fn the_page_is_what_prometheus_expects() {
    let server = Server::start(config());
    let (status, page) = server.get("/metrics");
    assert_eq!(status, 200);
    let mut typed = None;
    for line in page.lines() {
        if let Some(comment) = line.strip_prefix("# TYPE ") {
            let (name, kind) = comment.split_once(' ').unwrap();
            assert!(page.contains(&format!("# HELP {name} ")), "{name} has a HELP text");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{name} is a {kind}");
            typed = Some(name);
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert!(name.starts_with(typed.unwrap()), "{name} is under the TYPE before it");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    for name in [
        "weir_decisions_total{strategy=\"burst\",outcome=\"degraded_allowed\"}",
        "weir_decision_duration_seconds_bucket{method=\"ShouldRateLimit\",le=\"0.000005\"}",
        "weir_strategy_duration_seconds_bucket{strategy=\"burst\",le=\"0.00002\"}",
        "weir_rejected_requests_total{reason=\"unknown\"}",
        "weir_store_calls_total{result=\"error\"}",
        "weir_store_errors_total{kind=\"timeout\"}",
        "weir_store_call_duration_seconds_count",
        "weir_memory_keys",
        "weir_memory_bytes",
        "weir_memory_budget_bytes",
        "weir_memory_evictions_total",
        "weir_memory_refusals_total",
        "weir_envoy_requests_total{domain=\"unknown\",code=\"UNAVAILABLE\"}",
        "weir_envoy_rules",
        "weir_envoy_config_last_load_timestamp_seconds",
        "weir_connections",
        "weir_log_lines_dropped_total",
        &format!("weir_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")),
        "process_cpu_seconds_total",
        "process_max_fds",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_threads",
        "process_virtual_memory_bytes",
    ] {
        assert!(series(&page).contains(name), "{name} is there from the start\n{page}");
    }
}

#[test]
fn the_process_is_the_one_that_serves() {
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let before = now();
    let serve = Serve::start(&[]);
    let used = || usage::cpu_time(serve.pid()).as_secs_f64();
    let used_before = used();
    let page = serve.get("/metrics");
    // The times of boot and of the start are whole seconds, rounded down.
    let start = value(&page, "process_start_time_seconds");
    assert!(before - 3.0 < start && start <= now() + 1.0, "{start}: started after {before}");
    let cpu = value(&page, "process_cpu_seconds_total");
    assert!((used_before..=used()).contains(&cpu), "{cpu}");
}

#[tokio::test]
async fn decisions_are_counted_and_callers_make_no_series() {
    let server = Server::start(config());
    let mut client = server.client().await;
    let before = server.get("/metrics").1;
    for index in 0..100 {
        let unknown = ask_under(&format!("unknown-{index}\"}}\n"), &format!("resource-{index}"), "bob");
        client.should_allow(unknown).await.unwrap_err();
        client.should_allow(ask("", "bob")).await.unwrap_err();
        client.should_allow(ask_under("burst", "x", &format!("consumer-{index}"))).await.unwrap();
    }
    client.should_allow(ShouldAllowRequest { cost: Some(9), ..ask("burst/x", "bob") }).await.unwrap();
    for _ in 0..6 {
        client.should_allow(ask("burst/x", "bob")).await.unwrap();
    }
    let after = server.get("/metrics").1;
    assert_eq!(series(&before), series(&after));
    let of_burst =
        |outcome| value(&after, &format!("weir_decisions_total{{strategy=\"burst\",outcome=\"{outcome}\"}}"));
    assert_eq!([of_burst("allowed"), of_burst("denied"), of_burst("never")], [105.0, 1.0, 1.0]);
    assert_eq!(value(&after, "weir_decision_duration_seconds_count{method=\"ShouldAllow\"}"), 107.0);
    assert_eq!(value(&after, "weir_strategy_duration_seconds_count{strategy=\"burst\"}"), 107.0);
    assert!(!after.contains("weir_strategy_duration_seconds_count{strategy=\"inline\"}"), "{after}");
    assert_eq!(value(&after, "weir_store_calls_total{result=\"ok\"}"), 107.0);
    assert_eq!(value(&after, "weir_rejected_requests_total{reason=\"unknown\"}"), 100.0);
    assert_eq!(value(&after, "weir_rejected_requests_total{reason=\"invalid\"}"), 100.0);
    assert_eq!(value(&after, "weir_memory_keys"), 101.0);
}

#[test]
fn the_index_names_the_pages() {
    let server = Server::start(config());
    let (status, index) = server.get("/");
    assert_eq!(status, 200);
    for page in ["/metrics", "/livez", "/readyz"] {
        assert!(index.contains(page));
        assert_eq!(server.get(page).0, 200);
    }
    assert_eq!(server.get("/nothing").0, 404);
}
