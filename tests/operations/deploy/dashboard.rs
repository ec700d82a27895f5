//! Dashboard, documentation and the page that a running service shows name the same metrics.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::Value;
use weir_config::{
    AdminPath, ClientAuth, Config, DecisionLogConfig, KeyShare, LogTarget, ServerConfig, TlsConfig,
};
use weir_envoy::settings::{EnvoyConfig, XdsConfig, with_envoy};
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;

use super::read;
use crate::support::certificates::Authority;
use crate::support::server::{Server, config};
use crate::support::stores::redis;
use crate::support::{SOON, eventually};

/// The words of a text that begin with one of `prefixes`.
pub(super) fn words<'t>(text: &'t str, prefixes: &[&str]) -> BTreeSet<&'t str> {
    let word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let words = text.split(|char| !word(char));
    words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix))).collect()
}

/// The pages of one with a control plane, of one with Envoy's files, of a service on memory, of one with identity, of two on Redis, which have metrics of its nodes and of nodes that count, and of one with leases, queues, shadows
/// and a decision log.
pub(super) fn pages() -> String {
    static PAGES: OnceLock<String> = OnceLock::new();
    PAGES.get_or_init(all_pages).clone()
}

fn all_pages() -> String {
    let text = "
        strategies:
          exports: { concurrency: { limit: 3, per: [consumer] } }
          api: { limits: [{ name: each, per: [consumer], uniform: { interval: 1s } }], shadow: [new] }
          new: { limits: [{ name: each, per: [consumer], uniform: { interval: 2s } }] }
          llm:
            hold: { max: 10m }
            limits: [{ name: out, per: [consumer], cost: output, near_limit: 80%, uniform: { interval: 1s } }]
        queues: { jobs: { capacity: 9 } }
    ";
    let Config { rules, sections, .. } =
        Config::parse(text, "weir.yaml", &weir::features::overrides()).unwrap();
    // A server with identity, whose metrics are open.
    let guarded = Config { authorize: Some(Vec::new()), ..config() };
    let server = ServerConfig { admin_open: vec![AdminPath::Metrics], ..guarded.server.clone() };
    let guarded = Server::start(Config { server, ..guarded }).get("/metrics").1;
    let folder = tempfile::tempdir().unwrap();
    let to = LogTarget::File(folder.path().join("decisions"));
    let decision_log = DecisionLogConfig { keys: KeyShare::ALL, to, ..DecisionLogConfig::default() };
    let leases = Server::start(Config { rules, sections, decision_log, ..config() }).get("/metrics").1;
    let memory = Server::start(config()).get("/metrics").1;
    let redis = Server::start(Config { store: redis(), ..config() });
    let named = || redis.get("/metrics").1.contains("weir_store_node_up{");
    eventually(SOON, "the node of the configuration is on the page", named);
    let others =
        with_counting_nodes() + &with_tls() + &with_control_plane() + &with_live_control() + &with_files();
    guarded + &memory + &leases + &redis.get("/metrics").1 + &others
}

/// The page of a service that counts a strategy on its own.
fn with_counting_nodes() -> String {
    let text = "
        store: { redis: { nodes: ['redis://a'] } }
        strategies:
          api:
            approximate: { max_over: 9, nodes: 2 }
            limits: [{ name: each, per: [consumer], fixed_window: { limit: 100, window: 1m } }]
    ";
    let Config { rules, .. } = Config::parse(text, "weir.yaml", &weir::features::overrides()).unwrap();
    let server = Server::start(Config { rules, store: redis(), ..config() });
    let counts = || server.get("/metrics").1.contains("weir_approximate_has_place{");
    eventually(SOON, "the strategy is on the page", counts);
    server.get("/metrics").1
}

/// The page of a service with TLS and a revocation list.
fn with_tls() -> String {
    let authority = Authority::create();
    let issued = authority.issue("server", &["weir"]);
    let tls = TlsConfig {
        cert_file: issued.cert,
        key_file: issued.key,
        client_auth: ClientAuth::Required,
        client_ca_file: Some(authority.ca_file()),
        client_crl_file: Some(authority.revoke(&[])),
        ..TlsConfig::default()
    };
    let admin_open = vec![AdminPath::Metrics];
    let server = ServerConfig { tls: Some(tls), admin_open, ..config().server };
    Server::start(Config { server, ..config() }).get("/metrics").1
}

/// The page of a service whose limits a control plane sends, which is away.
fn with_control_plane() -> String {
    let xds = XdsConfig { server: "127.0.0.1:1".to_owned(), ..XdsConfig::default() };
    let envoy = EnvoyConfig { xds: Some(xds), ..EnvoyConfig::default() };
    Server::start(with_envoy(config(), envoy)).get("/metrics").1
}

/// The page of a service with live control.
fn with_live_control() -> String {
    let server = ServerConfig { control: true, ..config().server };
    Server::ready(Config { server, ..config() }).get("/metrics").1
}

/// The page of a service with Envoy's files, whose limits are on it.
fn with_files() -> String {
    let files = weir_testing::clients::root().join("deploy/envoy/ratelimit");
    let envoy = EnvoyConfig { config: Some(files), ..EnvoyConfig::default() };
    let server = Server::ready(with_envoy(config(), envoy));
    // The series of a rule appear with its first hit.
    let entry = Entry { key: "user".to_owned(), value: "bob".to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    let request =
        RateLimitRequest { domain: "additions".to_owned(), descriptors: vec![descriptor], hits_addend: 1 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        RateLimitServiceClient::new(server.channel().await).should_rate_limit(request).await.unwrap();
    });
    server.get("/metrics").1
}

fn expressions(dashboard: &Value) -> Vec<&str> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap()).collect()
}

#[test]
fn every_metric_of_the_dashboard_exists() {
    let page = pages();
    let series: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    let samples: BTreeSet<&str> = series.iter().map(|line| line.split(['{', ' ']).next().unwrap()).collect();
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/weir.json")).unwrap();
    let expressions = expressions(&dashboard);
    assert!(expressions.len() > 10);
    for expression in expressions {
        let metrics = words(expression, &["weir_", "process_"]);
        assert!(!metrics.is_empty(), "{expression}");
        for metric in &metrics {
            assert!(samples.contains(metric), "{metric} of the dashboard is not on the page");
        }
        // What it groups by is a label of what it sums.
        for labels in expression.split("by (").skip(1).filter_map(|rest| rest.split(')').next()) {
            for label in labels.split(", ") {
                let has = |line: &&&str| line.contains(&format!("{label}=\""));
                let of = |line: &&&str| metrics.iter().any(|metric| line.starts_with(metric));
                assert!(series.iter().filter(of).any(|line| has(&line)), "{metrics:?} has no label {label}");
            }
        }
    }
}

#[test]
fn every_metric_is_documented_and_on_the_dashboard() {
    let page = pages();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE weir_"));
    let live: BTreeSet<String> =
        types.map(|line| format!("weir_{}", line.split(' ').next().unwrap())).collect();
    let documentation = read("docs/metrics.md");
    let rows = documentation.lines().filter_map(|line| line.strip_prefix("| `weir_")?.split('`').next());
    assert_eq!(rows.map(|name| format!("weir_{name}")).collect::<BTreeSet<_>>(), live);
    let dashboard = read("deploy/grafana/weir.json");
    for name in live {
        assert!(dashboard.contains(&name), "{name} is not on the dashboard");
    }
}

#[test]
fn panels_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/weir.json")).unwrap();
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["title"]);
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + w <= 24);
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{} covers another panel", panel["title"]);
        }
    }
}
