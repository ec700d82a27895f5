//! The probe charges by the engines that are in use, on keys of this process alone, which go by themselves.

use weir_config::{Config, Login, RedisConfig, Secret};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::{FailurePolicy, Field, Resources, Rules};
use weir_envoy::settings::{EnvoyConfig, with_envoy};
use weir_testing::rules::strategy;
use weir_units::Micros;

use super::{of_node, on, probe_keys, ready, says, single};
use crate::failure::access::add_user;
use crate::support::server::Server;
use crate::support::{RedisServer, SOON, eventually, scratch};

/// A service with a strategy of each of these limits.
fn with(redis: RedisConfig, algorithms: &[Algorithm]) -> Config {
    let strategies = algorithms.iter().enumerate().map(|(index, algorithm)| {
        let limits: [(&str, &[Field], Algorithm); 1] = [("each", &[Field::Consumer], *algorithm)];
        strategy(&format!("s{index}"), &limits, FailurePolicy::Error)
    });
    Config { rules: Rules::new(strategies.collect(), Resources::new([])), ..on(redis) }
}

fn bucket() -> Algorithm {
    Algorithm::bucket(5, Rate { count: 1, period: Micros::from_secs(1) }).unwrap()
}

/// A user who may do everything but what a log needs.
fn without_logs(redis: &RedisServer) -> RedisConfig {
    add_user(redis, "hunter2", &["+info", "-rpush"]);
    let login = Some(Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") });
    RedisConfig { login, ..single(redis) }
}

#[test]
fn an_engine_that_is_not_in_use_needs_no_rights() {
    let redis = RedisServer::start();
    let server = Server::start_by_the_system(with(without_logs(&redis), &[bucket()]));
    ready(&server);
    let log = Algorithm::sliding_log(5, Micros::from_secs(1)).unwrap();
    let server = Server::start_by_the_system(with(without_logs(&redis), &[bucket(), log]));
    says(&server, &["degraded: Redis node", "ACL SETUSER weir ", "+rpush"]);
}

/// Envoy's rules are read again while the service runs.
#[test]
fn what_is_in_use_follows_reloads() {
    let redis = RedisServer::start();
    let folder = scratch::dir("rules-");
    let file = folder.path().join("rules.yaml");
    let write = |algorithm: &str| {
        let limit = format!("{{ unit: minute, requests_per_unit: 5{algorithm} }}");
        let text = format!("domain: d\ndescriptors:\n  - {{ key: a, rate_limit: {limit} }}\n");
        std::fs::write(&file, text).unwrap();
    };
    write("");
    let config = with(without_logs(&redis), &[bucket()]);
    let envoy = EnvoyConfig { config: Some(folder.path().to_owned()), ..EnvoyConfig::default() };
    let server = Server::start_by_the_system(with_envoy(config, envoy));
    ready(&server);
    write(", algorithm: sliding_log");
    says(&server, &["degraded: Redis node", "ACL SETUSER weir ", "+rpush"]);
    write("");
    ready(&server);
}

/// Each engine has a key of its own, below the tag of this process, and none lasts longer than a minute.
#[test]
fn keys_of_probes_go_by_themselves() {
    let redis = RedisServer::start();
    let minute = Micros::from_secs(60);
    let all = [
        bucket(),
        Algorithm::fixed_window(5, minute, false, false).unwrap(),
        Algorithm::interval_refill(5, 1, minute, false).unwrap(),
        Algorithm::sliding_log(5, minute).unwrap(),
        Algorithm::sliding_window(5, minute).unwrap(),
        Algorithm::bucketed_window(5, minute, 6, false).unwrap(),
        Algorithm::bucketed_window(5, minute, 600, false).unwrap(),
    ];
    let server = Server::start_by_the_system(with(single(&redis), &all));
    ready(&server);
    // The marker of its data, and the key of a breaker that looks at a busy server, are of no engine.
    let of_engines = || {
        let keys = probe_keys(&redis).into_iter();
        keys.filter(|key| !key.ends_with(":marker") && !key.ends_with(":breaker")).collect::<Vec<_>>()
    };
    let keys = of_engines();
    for engine in ["bucket", "window", "interval", "log", "sliding", "slots", "sparse"] {
        let count = keys.iter().filter(|key| key.ends_with(&format!("}}probe:{engine}"))).count();
        assert_eq!(count, 2, "of two slots, which a node of a cluster would refuse: {keys:?}");
    }
    eventually(SOON, "the fingerprint", || {
        redis.keys().iter().any(|key| key == "weir:{key_secret}:fingerprint")
    });
    for key in redis.keys() {
        assert!((1..=60_000).contains(&redis.pttl(&key)), "{key}: {}", redis.pttl(&key));
    }
    let other = Server::start_by_the_system(with(single(&redis), &all));
    ready(&other);
    assert_eq!(of_engines().len(), 2 * keys.len(), "each process has its own: {:?}", of_engines());
    assert_eq!(of_node(&server, "weir_store_node_up", &redis.addr()).as_deref(), Some("1"));
}
