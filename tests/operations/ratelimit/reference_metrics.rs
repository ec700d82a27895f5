//! The metrics of the reference, under its names and labels.

use serde_json::Value;

use super::{Ratelimit, files};

const FILE: &str = "domain: shop/eu
descriptors:
  - key: route
    value: a:b
    descriptors:
      - key: rule-0
        value: rule-0
        rate_limit: { unit: day, requests_per_unit: 1 }
        descriptors:
          - { key: masked_remote_address, value: 10.0.0.0/8, rate_limit: { unit: day, requests_per_unit: 5 } }
  - { key: alone, rate_limit: { unit: minute, requests_per_unit: 9 } }
";

/// Every family that a mapping file may name stands on the page, and no other one with such a name.
#[test]
fn the_page_has_the_families_of_mapping_files() {
    let redis = crate::support::RedisServer::start();
    let started = Ratelimit::start(&[
        ("WEIR_STORE", ""),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &redis.addr()),
        ("USE_PROMETHEUS", "true"),
    ]);
    // Families by rule appear with the first hit of one.
    started.post("/json", r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#);
    let page = || started.get(9090, "/metrics").unwrap().1;
    let value = |name: &str| -> f64 {
        page().lines().find_map(|line| line.strip_prefix(&format!("{name} "))?.parse().ok()).unwrap()
    };
    let families = |page: &str| -> std::collections::BTreeSet<String> {
        let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ratelimit_"));
        types.map(|line| format!("ratelimit_{}", line.split(' ').next().unwrap())).collect()
    };
    let known = weir_envoy::ratelimit::REFERENCE_FAMILIES.map(|(name, _)| name.to_owned());
    assert_eq!(families(&page()), known.into());
    let total = "ratelimit_redis_pool_cx_total";
    crate::support::eventually(crate::support::SOON, "connections", || value(total) >= 2.0);
    redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    let (active, closed) = ("ratelimit_redis_pool_cx_active", "ratelimit_redis_pool_cx_local_close");
    crate::support::eventually(crate::support::SOON, "closed connections", || value(closed) >= 2.0);
    crate::support::eventually(crate::support::SOON, "new ones", || value(active) >= 2.0);
}

#[test]
fn hits_are_shown_by_the_first_two_entries() {
    let folder = files(FILE);
    let root = folder.path().join("data").display().to_string();
    let started = Ratelimit::start(&[("RUNTIME_ROOT", &root), ("USE_PROMETHEUS", "true")]);
    let ask = |entries: &[(&str, &str)]| {
        let entries: Vec<Value> =
            entries.iter().map(|(key, value)| serde_json::json!({ "key": key, "value": value })).collect();
        let body = serde_json::json!({ "domain": "shop/eu", "descriptors": [{ "entries": entries }] });
        started.post("/json", &body.to_string()).0
    };
    let route = [("route", "a:b"), ("rule-0", "rule-0")];
    let deep = [route[0], route[1], ("masked_remote_address", "10.0.0.0/8")];
    assert_eq!([ask(&route), ask(&route), ask(&deep), ask(&[("alone", "x")])], [200, 429, 200, 200]);
    assert_eq!(started.post("/json", r#"{"domain":""}"#).0, 400);
    let (_, page) = started.get(9090, "/metrics").unwrap();
    for line in [
        r#"ratelimit_service_rate_limit_total_hits{domain="shop/eu",key1="route_a_b",key2="rule-0_rule-0"} 3"#,
        r#"ratelimit_service_rate_limit_over_limit{domain="shop/eu",key1="route_a_b",key2="rule-0_rule-0"} 1"#,
        r#"ratelimit_service_rate_limit_within_limit{domain="shop/eu",key1="route_a_b",key2="rule-0_rule-0"} 2"#,
        r#"ratelimit_service_rate_limit_total_hits{domain="shop/eu",key1="alone"} 1"#,
        r#"ratelimit_service_should_rate_limit_error{err_type="redis_error"} 0"#,
        "ratelimit_service_config_load_success 1",
        "ratelimit_service_config_load_error 0",
        r#"weir_envoy_limit{domain="shop/eu",rule="alone"} 9"#,
        r#"weir_envoy_limit_period_seconds{domain="shop/eu",rule="alone"} 60"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    for start in [
        r#"ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} "#,
        r#"ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} "#,
        r#"process_resident_memory_bytes "#,
        r#"process_virtual_memory_bytes "#,
    ] {
        let value = page
            .lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_else(|| panic!("{start}\n{page}"));
        assert!(value.parse::<f64>().unwrap() >= 4.0, "{start}{value}");
    }
}

/// What the cache of denials answers, under the names of the local cache; limits in requests; and labels of every metric.
#[test]
fn the_local_cache_limits_in_requests_and_extra_tags_are_shown() {
    let redis = crate::support::RedisServer::start();
    let started = Ratelimit::start(&[
        ("WEIR_STORE", ""),
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &redis.addr()),
        ("USE_PROMETHEUS", "true"),
        ("EXTRA_TAGS", "cluster.id:eu-1,domain:mine"),
    ]);
    let ask = |more: &str| {
        let entries = r#""entries":[{"key":"k","value":"v"}]"#;
        started.post("/json", &format!(r#"{{"domain":"d","descriptors":[{{{entries}{more}}}]}}"#)).0
    };
    let asked: Vec<u16> = (0..7).map(|_| ask("")).collect();
    assert_eq!(asked, [200, 200, 429, 429, 429, 429, 429]);
    assert_eq!(ask(r#","limit":{"requestsPerUnit":9,"unit":"DAY"}"#), 200);
    let (_, page) = started.get(9090, "/metrics").unwrap();
    let value = |start: &str| -> f64 {
        let found = page.lines().find_map(|line| line.strip_prefix(start)?.strip_prefix(' ')?.parse().ok());
        found.unwrap_or_else(|| panic!("{start}\n{page}"))
    };
    let of_rule = |family: &str, key: &str| {
        let name = format!("ratelimit_service_rate_limit_{family}");
        value(&format!(r#"{name}{{domain="d",key1="{key}",cluster_id="eu-1"}}"#))
    };
    assert_eq!([of_rule("total_hits", "k_v"), of_rule("over_limit", "k_v")], [7.0, 5.0]);
    assert_eq!(of_rule("total_hits", "override"), 1.0);
    assert_eq!(of_rule("within_limit", "override"), 1.0);
    let cached = of_rule("over_limit_with_local_cache", "k_v");
    assert_eq!(cached, 4.0, "the first denial is Redis's");
    let of_cache =
        |count: &str| value(&format!(r#"ratelimit_localcache_{count}{{cluster_id="eu-1",domain="mine"}}"#));
    let [hits, misses, lookups] = ["hitCount", "missCount", "lookupCount"].map(of_cache);
    assert_eq!((hits, lookups), (cached, hits + misses));
    let own = |line: &&str| !line.starts_with('#') && !line.contains(r#"cluster_id="eu-1""#);
    assert_eq!(page.lines().find(own), None, "every metric has the label");
}
