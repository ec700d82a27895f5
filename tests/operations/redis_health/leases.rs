//! The probe takes and returns a lease if a strategy has leases, so a node that cannot keep leases is named.

use weir_config::{Config, ConfigOverrides, Login, RedisConfig, Secret};
use weir_testing::rights;

use super::{on, probe_keys, ready, says, single};
use crate::failure::access::{LEASE_RIGHTS, add_user};
use crate::support::server::Server;
use crate::support::{RedisServer, eventually};

const LEASES: &str = "strategies: { exports: { concurrency: { limit: 2, per: [consumer] } } }";
const RATES: &str =
    "strategies: { exports: { limits: [{ name: each, per: [consumer], uniform: { interval: 1s } }] } }";

fn with(redis: RedisConfig, strategies: &str) -> Config {
    let config = Config::parse(strategies, "weir.yaml", &ConfigOverrides::default()).unwrap();
    Config { rules: config.rules, ..on(redis) }
}

/// A user with the rights of `docs/redis.md` for rate limits, and `more`.
fn user(redis: &RedisServer, more: &[&str]) -> RedisConfig {
    add_user(redis, "hunter2", &[&["+info"], more].concat());
    let login = Some(Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") });
    RedisConfig { login, ..single(redis) }
}

#[test]
fn a_node_that_cannot_keep_leases_is_named() {
    let redis = RedisServer::start();
    let compares = rights::of_comparison();
    let server = Server::start_by_the_system(with(user(&redis, &compares), RATES));
    ready(&server);
    let server = Server::start_by_the_system(with(user(&redis, &compares), LEASES));
    says(&server, &["note: Redis node", " cannot serve leases", "ACL SETUSER weir ", "+hdel"]);
    redis.cli(&[&["ACL", "SETUSER", "weir"], &LEASE_RIGHTS.split(' ').collect::<Vec<_>>()[..]].concat());
    ready(&server);
}

/// The keys of the probe go by themselves, and a node with leases only needs no right of an engine.
#[test]
fn the_leases_of_probes_end() {
    let redis = RedisServer::start();
    let rights: Vec<&str> = LEASE_RIGHTS.split(' ').collect();
    let without_engines = [&rights[..], &["-rpush", "-set", "-setrange"]].concat();
    let server = Server::start_by_the_system(with(user(&redis, &without_engines), LEASES));
    eventually(crate::support::SOON, "a probe", || !probe_keys(&redis).is_empty());
    says(&server, &["ready"]);
    for key in probe_keys(&redis) {
        assert!(key.ends_with("}probe:leases") || key.ends_with("}probe:lease_ends"), "{key}");
        assert!(redis.pttl(&key) <= 60_000, "{key}");
    }
}
