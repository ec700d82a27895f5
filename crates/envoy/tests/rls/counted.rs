//! The metrics page about Envoy's requests and rules.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::time::Duration;

use flate2::read::GzDecoder;
use weir_config::{StoreConfig, Topology};
use weir_envoy::settings::EnvoyConfig;

use super::notation::request;
use super::{Client, client, memory, serve};
use crate::support::server::Server;
use crate::support::{RedisServer, SOON, eventually, eventually_async, redis_config, scratch};

const FILE: &str = "
domain: d
descriptors:
  - {key: a_b, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: a, value: b, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: override, rate_limit: {unit: minute, requests_per_unit: 5, on_store_failure: allow}}
  - key: a
    value: 'x,y=\"z\"'
    descriptors: [{key: deep, rate_limit: {unit: minute, requests_per_unit: 5}}]
";

/// Samples by their name and labels.
fn page(server: &Server) -> BTreeMap<String, String> {
    let page = server.get("/metrics").1;
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| line.rsplit_once(' ').unwrap());
    samples.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The labels of every series of the family.
fn labels<'p>(page: &'p BTreeMap<String, String>, family: &str) -> Vec<&'p str> {
    let start = format!("{family}{{");
    page.keys().filter_map(|name| name.strip_prefix(&start)?.strip_suffix('}')).collect()
}

async fn ask(client: &mut Client, asked: &str) {
    let _ = client.should_rate_limit(request(asked)).await;
}

fn files(text: &str) -> (tempfile::TempDir, EnvoyConfig) {
    let folder = scratch::dir("envoy-counted-");
    fs::write(folder.path().join("d.yaml"), text).unwrap();
    let files = EnvoyConfig { config: Some(folder.path().to_owned()), ..EnvoyConfig::default() };
    (folder, files)
}

#[tokio::test]
async fn each_rule_has_its_own_count_until_its_file_is_removed() {
    let (folder, envoy) = files(FILE);
    let server = serve(memory(), envoy);
    let mut client = client(&server).await;
    for asked in ["d [a_b=v]", "d [a_b=v]", "d [a=b]", "d [override=v]", "d [new=v]@7/DAY", "d [new=v]@7/DAY"]
    {
        ask(&mut client, asked).await;
    }
    let before = page(&server);
    let hits = |rule: &str| &before[&format!("weir_envoy_hits_total{{domain=\"d\",rule=\"{rule}\"}}")];
    assert_eq!([hits("a_b"), hits("a=b"), hits("\\\"override\\\""), hits("override")], ["2", "1", "1", "2"]);
    let deep = "domain=\"d\",rule=\"a=\\\"x,y=\\\\\\\"z\\\\\\\"\\\",deep\"";
    let all = labels(&before, "weir_envoy_hits_total");
    assert!(!all.contains(&deep), "a rule without a hit has no series: {all:?}");
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!(before["weir_envoy_rules"], "4");
    let loaded_at: f64 = before["weir_envoy_config_last_load_timestamp_seconds"].parse().unwrap();
    assert!(loaded_at > 1.7e9, "{loaded_at}");

    let one = "domain: d\ndescriptors:\n  - {key: a_b, rate_limit: {unit: minute, requests_per_unit: 5}}\n";
    fs::write(folder.path().join("d.yaml"), one).unwrap();
    eventually(SOON, "the new file serves", || page(&server)["weir_envoy_rules"] == "1");
    let after = page(&server);
    let rules =
        ["domain=\"d\",rule=\"a_b\"", "domain=\"d\",rule=\"override\"", "domain=\"other\",rule=\"other\""];
    assert_eq!(labels(&after, "weir_envoy_hits_total"), rules);
    assert_eq!(after["weir_envoy_hits_total{domain=\"d\",rule=\"a_b\"}"], "2", "what stays goes on");
    fs::remove_file(folder.path().join("d.yaml")).unwrap();
    eventually(SOON, "the domain has gone", || {
        labels(&page(&server), "weir_envoy_requests_total").iter().all(|one| one.contains("\"unknown\""))
    });
}

#[tokio::test]
async fn answers_are_counted_by_domain_and_code() {
    let redis = RedisServer::start();
    let (_folder, envoy) = files(FILE);
    let server = serve(StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single)), envoy);
    let mut client = client(&server).await;
    for asked in ["d [a=b]", "nobody [a=b]", "somebody [a=b]", "d [a=b]@1/UNKNOWN"] {
        ask(&mut client, asked).await;
    }
    redis.kill();
    eventually(SOON, "the loss is noticed", || server.get("/readyz").1.contains("127.0.0.1"));
    ask(&mut client, "d [a=b]").await;
    ask(&mut client, "d [override=v] +3").await;
    let page = page(&server);
    let count = |domain: &str, code: &str| {
        page[&format!("weir_envoy_requests_total{{domain=\"{domain}\",code=\"{code}\"}}")].clone()
    };
    assert_eq!([count("d", "OK"), count("unknown", "OK")], ["2", "2"]);
    assert_eq!([count("d", "INVALID_ARGUMENT"), count("d", "UNAVAILABLE")], ["1", "1"]);
    assert_eq!(labels(&page, "weir_envoy_requests_total").len(), 2 * 7);
    let degraded =
        |rule: &str| page[&format!("weir_envoy_degraded_total{{domain=\"d\",rule=\"{rule}\"}}")].clone();
    assert_eq!([degraded("\\\"override\\\""), degraded("a=b")], ["3", "0"]);
    assert_eq!(page["weir_decision_duration_seconds_count{method=\"ShouldRateLimit\"}"], "5");
}

#[tokio::test]
async fn what_is_given_up_is_counted_too() {
    let redis = RedisServer::start();
    let (_folder, envoy) = files(FILE);
    let slow = weir_config::RedisConfig {
        deadline: weir_units::Micros::from_secs(60),
        ..redis_config(vec![redis.url()], Topology::Single)
    };
    let server = serve(StoreConfig::Redis(slow), envoy);
    let mut client = client(&server).await;
    ask(&mut client, "d [a=b]").await;
    redis.freeze();
    let cancelled = "weir_envoy_requests_total{domain=\"d\",code=\"CANCELLED\"}";
    let given_up = async || {
        let mut client = client.clone();
        let call = client.should_rate_limit(request("d [a=b]"));
        let _ = tokio::time::timeout(Duration::from_millis(20), call).await;
        page(&server)[cancelled] != "0"
    };
    eventually_async(SOON, "a call that is given up is counted", given_up).await;
    redis.thaw();
}

/// After its own restart a control plane may publish a part of the domains first.
#[tokio::test]
async fn a_domain_that_comes_back_keeps_what_was_used() {
    for store in [memory(), super::redis()] {
        let day = "descriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 5 } }]";
        let (folder, envoy) = files(&format!("domain: d\n{day}\n"));
        let other = folder.path().join("e.yaml");
        let text = format!("domain: e\n{day}\n");
        fs::write(&other, &text).unwrap();
        let server = serve(store, envoy);
        let mut client = client(&server).await;
        let mut left = async |domain: &str| {
            let asked = request(&format!("{domain} [k=v]"));
            let answered = client.should_rate_limit(asked).await.unwrap().into_inner();
            answered.statuses[0].limit_remaining
        };
        assert_eq!([left("d").await, left("e").await, left("e").await], [4, 4, 3]);
        let rules = |count: &str| page(&server)["weir_envoy_rules"] == count;
        fs::remove_file(&other).unwrap();
        eventually(SOON, "the domain is gone", || rules("1"));
        assert_eq!([left("d").await, left("e").await], [3, 0]);
        fs::write(&other, &text).unwrap();
        eventually(SOON, "the domain is back", || rules("2"));
        assert_eq!([left("d").await, left("e").await], [2, 2]);
    }
}

#[tokio::test]
async fn a_domain_without_a_good_version_is_refused_and_named() {
    let (folder, envoy) =
        files("domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 5 } }]");
    let bad = "descriptors: [{ key: '' }]";
    fs::write(folder.path().join("e.yaml"), format!("domain: e\n{bad}")).unwrap();
    let server = serve(memory(), EnvoyConfig { isolate_domains: true, ..envoy });
    let mut client = client(&server).await;
    let mut answered = async |domain: &str| {
        let answered = client.should_rate_limit(request(&format!("{domain} [k=v]"))).await;
        super::notation::answer(&answered.map(tonic::Response::into_inner))
    };
    assert!(answered("d").await.starts_with("OK | OK 4 of 5/DAY "));
    assert_eq!(answered("e").await, "FailedPrecondition: no rate limit configuration loaded");
    assert_eq!(answered("unknown").await, "OK | OK");
    let before = page(&server);
    assert_eq!(labels(&before, "weir_envoy_domain_refused"), ["domain=\"e\""]);
    assert_eq!(before["weir_envoy_domain_refused{domain=\"e\"}"], "2");
    assert_eq!(before["weir_envoy_config_loads_total{result=\"error\"}"], "1");

    fs::write(folder.path().join("d.yaml"), format!("domain: d\n{bad}")).unwrap();
    fs::write(folder.path().join("e.yaml"), FILE.replace("domain: d", "domain: e")).unwrap();
    eventually(SOON, "the good domain serves", || page(&server)["weir_envoy_rules"] == "5");
    assert!(answered("d").await.starts_with("OK | OK 3 of 5/DAY "));
    assert_eq!(page(&server)["weir_envoy_domain_refused{domain=\"d\"}"], "1");
    fs::remove_file(folder.path().join("d.yaml")).unwrap();
    eventually(SOON, "no domain is refused", || {
        labels(&page(&server), "weir_envoy_domain_refused").is_empty()
    });
}

/// With all series of all rules the page had 8 MB.
#[tokio::test]
async fn twenty_thousand_rules_without_hits_are_not_on_the_page() {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    for number in 0..20_000 {
        text += &format!(
            "  - {{key: path, value: /api/orders/{number}, rate_limit: {{unit: day, requests_per_unit: 9}}}}\n"
        );
    }
    let (_folder, envoy) = files(&text);
    let server = serve(memory(), EnvoyConfig { reference_metrics: true, ..envoy });
    assert_eq!(page(&server)["weir_envoy_rules"], "20000");
    let before = server.get("/metrics").1.len();
    ask(&mut client(&server).await, "d [path=/api/orders/7]").await;
    let after = server.get("/metrics").1;
    println!("/metrics with 20,000 rules: {before} bytes, after a hit on one: {} bytes", after.len());
    assert!(before < 100_000 && after.len() < 100_000, "{before}, {}", after.len());
    for family in ["weir_envoy_hits_total", "weir_envoy_limit", "ratelimit_service_rate_limit_total_hits"] {
        let of_rule = |line: &&str| line.starts_with(&format!("{family}{{")) && line.contains("orders/7");
        assert_eq!(after.lines().filter(of_rule).count(), 1, "{family}");
    }
}

/// Names that control planes make may have 4 KiB.
#[tokio::test]
async fn labels_are_bounded() {
    let (domain, key) = ("x".repeat(4096), "k".repeat(4096));
    let (_folder, envoy) =
        files(&format!("domain: {domain}\ndescriptors: [{{ key: {key}, rate_limit: {{ unit: day }} }}]"));
    let server = serve(memory(), envoy);
    ask(&mut client(&server).await, &format!("{domain} [{key}=v]")).await;
    let page = page(&server);
    let longest = page.keys().filter(|name| name.starts_with("weir_envoy_")).map(String::len).max().unwrap();
    assert!((512..640).contains(&longest), "{longest}");
    let hits =
        page.keys().find(|name| name.starts_with("weir_envoy_hits_total") && name.contains("rule=\"kk"));
    assert_eq!(page[hits.unwrap()], "1");
}

#[tokio::test]
async fn the_page_is_compressed_for_clients_that_accept_it() {
    let server = serve(memory(), EnvoyConfig::default());
    let mut http = crate::support::http::Http::connect(server.admin).await;
    let plain = http.get("/metrics", &[]).await;
    assert_eq!((plain.status, plain.header("content-encoding")), (200, ""));
    let packed = http.get_bytes("/metrics", &[("accept-encoding", "gzip")]).await;
    assert!(packed.len() * 4 < plain.body.len(), "{} of {}", packed.len(), plain.body.len());
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    assert!(text.contains("\nweir_build_info{"), "{text}");
}
