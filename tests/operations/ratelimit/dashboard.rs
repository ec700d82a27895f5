//! The queries of Envoy Gateway's dashboard for global rate limits, in a real Prometheus that scrapes the process.

use super::{Ratelimit, files};
use crate::support::{Prometheus, SOON, eventually};

/// The labels that its panels ask for.
const ROUTE: &str = "httproute/default/http-ratelimit/rule/0/match/0/ratelimit_example";
const RULE: &str = "rule-0-match-0";

#[test]
fn the_queries_of_envoy_gateways_dashboard_return_numbers() {
    let folder = files(&format!(
        "domain: default/eg/http
descriptors:
  - key: {ROUTE}
    value: {ROUTE}
    descriptors:
      - {{ key: {RULE}, value: {RULE}, rate_limit: {{ unit: day, requests_per_unit: 5 }} }}
"
    ));
    let shapes = include_str!("xds/golden/shapes.yaml").split("---\n");
    let all_match = shapes.filter(|one| one.contains("domain: ns/gateway/multiple-all-match\n"));
    // A limit a day, because the calls may take longer than a second.
    let all_match = all_match.map(|one| one.replace("unit: SECOND", "unit: DAY")).collect::<String>();
    std::fs::write(folder.path().join("data/ratelimit/config/all-match.yaml"), all_match).unwrap();
    let root = folder.path().join("data").display().to_string();
    let started = Ratelimit::start(&[("RUNTIME_ROOT", &root), ("USE_PROMETHEUS", "true")]);
    let target = started.at(9090);
    let Some(prometheus) = Prometheus::scraping(target, ("app_kubernetes_io_component", "ratelimit")) else {
        return;
    };
    let asked = [(); 7].map(|()| started.json("default/eg/http", &[(ROUTE, ROUTE), (RULE, RULE)]));
    assert_eq!(asked[4..], ["OK 5/DAY", "OVER_LIMIT 5/DAY", "OVER_LIMIT 5/DAY"]);
    let of_rule = format!(r#"{{domain="default/eg/http", key1="{ROUTE}_{ROUTE}", key2="{RULE}_{RULE}"}}"#);
    for (family, expected) in [("total_hits", 7.0), ("near_limit", 1.0), ("over_limit", 2.0)] {
        let query = format!("ratelimit_service_rate_limit_{family}{of_rule}");
        eventually(SOON, &query, || prometheus.query(&query) == [expected]);
    }
    for memory in ["resident", "virtual"] {
        let query =
            format!(r#"(process_{memory}_memory_bytes{{app_kubernetes_io_component="ratelimit"}})/1000000"#);
        let found = prometheus.query(&query);
        assert!(found.len() == 1 && found[0] > 1.0, "{query}: {found:?}");
    }
    // The golden set `multiple-all-match`: its seven levels are added into their first two.
    let (all, of) = ("ns/gateway/multiple-all-match", "httproute/ns/a/rule/0/match/0/www_example_com");
    let levels = [
        (of, of),
        (RULE, RULE),
        ("rule-0-match-1", "rule-0-match-1"),
        ("rule-0-match-2", "anything"),
        ("rule-0-method", "GET"),
        ("rule-0-path", "/foo"),
        ("masked_remote_address", "10.0.0.0/8"),
    ];
    let asked = [(); 7].map(|()| started.json(all, &levels));
    assert_eq!(asked[4..], ["OK 5/DAY", "OVER_LIMIT 5/DAY", "OVER_LIMIT 5/DAY"]);
    let of_rule = format!(r#"{{domain="{all}", key1="{of}_{of}", key2="{RULE}_{RULE}"}}"#);
    for (family, expected) in [("total_hits", 7.0), ("near_limit", 1.0), ("over_limit", 2.0)] {
        let query = format!("ratelimit_service_rate_limit_{family}{of_rule}");
        eventually(SOON, &query, || prometheus.query(&query) == [expected]);
    }
    // What users miss in the reference: the limit itself.
    let limit = prometheus.query(r#"weir_envoy_limit{domain="default/eg/http"}"#);
    assert_eq!(limit, [5.0]);
}
