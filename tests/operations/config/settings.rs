//! Flags and variables: what is apart from single settings, which `every_setting.rs` tries one by one.

use weir_config::{Config, ConfigOverrides, RedisConfig, StoreConfig, Topology};
use weir_units::Micros;

use super::section;

fn with(text: &str, settings: &ConfigOverrides) -> Result<Config, String> {
    Config::parse(&section(text), "weir.yaml", settings).map_err(|errors| errors.to_string())
}

#[test]
fn settings_apply_to_the_built_in_example() {
    let settings = ConfigOverrides::default().with("workers", "3");
    let config = Config::built_in_with(&settings).unwrap();
    assert_eq!((config.server.workers, config.sources), (3, Vec::new()));
}

#[test]
fn the_store_can_be_replaced() {
    let file = "store: { redis: { nodes: [\"redis://a\"], deadline: 7ms } }";
    let settings = ConfigOverrides::default().with("store", "memory");
    assert!(matches!(with(file, &settings).unwrap().store, StoreConfig::Memory(_)));

    let settings = ConfigOverrides::default()
        .with("store", "redis://b, redis://c:7000")
        .with("topology", "cluster")
        .with("connect_timeout", "1s")
        .with("max_waiting", "9");
    let expected = RedisConfig {
        nodes: ["redis://b:6379", "redis://c:7000"].map(String::from).to_vec(),
        topology: Topology::Cluster,
        deadline: Micros::from_millis(7),
        connect_timeout: Micros::from_secs(1),
        max_waiting: 9,
        ..RedisConfig::default()
    };
    assert_eq!(with(file, &settings).unwrap().store, StoreConfig::Redis(expected.clone()));

    let settings = settings.with("deadline", "8ms");
    let expected = RedisConfig { deadline: Micros::from_millis(8), ..expected };
    let config = with("store: { memory: {} }", &settings).unwrap();
    assert_eq!(config.store, StoreConfig::Redis(expected));
}

#[test]
fn mistakes_of_several_settings_bear_the_name_of_one() {
    let none = ConfigOverrides::default;
    let cases = [
        (
            none().with("listen", "127.0.0.1:8080"),
            "--listen or WEIR_LISTEN: server.admin: 127.0.0.1:8080 is the address of `listen` too; each needs its own",
        ),
        (
            none().with("store", "mem"),
            "--store or WEIR_STORE: store.redis.nodes: \"mem\" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS",
        ),
        (
            none().with("store", " ,"),
            "--store or WEIR_STORE: store.redis.nodes: names no address; give at least one, such as redis://127.0.0.1:6379",
        ),
        (
            none().with("store", "redis://a,redis://b"),
            "--store or WEIR_STORE: store.redis.topology: 2 addresses are given, but `topology: single` has one; say `topology: cluster` if they are one cluster",
        ),
        (
            none().with("store", "redis://a,redis://a").with("topology", "cluster"),
            "--store or WEIR_STORE: store.redis.nodes: redis://a:6379 is listed twice",
        ),
    ];
    for (settings, expected) in cases {
        assert_eq!(with("", &settings).unwrap_err(), expected);
    }
}

/// A setting that cannot have an effect is a mistake rather than a surprise.
#[test]
fn settings_of_the_other_store_are_refused() {
    let settings = ConfigOverrides::default().with("deadline", "5ms").with("max_waiting", "1");
    let expected = "--deadline or WEIR_DEADLINE: store: is for Redis, but the store is memory\n\
                    --max-waiting or WEIR_MAX_WAITING: store: is for Redis, but the store is memory";
    assert_eq!(with("", &settings).unwrap_err(), expected);
    let settings = ConfigOverrides::default().with("store", "redis://a").with("budget", "1GiB");
    let expected = "--budget or WEIR_BUDGET: store: is for the memory store, but the store is Redis";
    assert_eq!(with("", &settings).unwrap_err(), expected);
}

#[test]
fn a_setting_hides_no_mistake_of_the_file() {
    let settings = ConfigOverrides::default().with("workers", "1").with("store", "memory");
    let file = "server: { workers: many }\nstore: { redis: { nodes: [\"b\"] } }";
    let expected = "weir.yaml:1:20: server.workers: \"many\" is not a whole number of at least 0\n\
                    weir.yaml:2:27: store.redis.nodes[0]: \"b\" is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS";
    assert_eq!(with(file, &settings).unwrap_err(), expected);
}

/// Mistakes in settings are reported even if the file cannot be read.
#[test]
fn settings_are_checked_without_a_file() {
    let settings = ConfigOverrides::default().with("workers", "x");
    let errors = Config::load("no/such/file.yaml", &settings).unwrap_err().to_string();
    let lines: Vec<&str> = errors.lines().collect();
    assert!(lines[0].starts_with("no/such/file.yaml: cannot be read: "), "{errors}");
    let expected = "--workers or WEIR_WORKERS: server.workers: \"x\" is not a whole number of at least 0";
    assert_eq!(lines[1..], [expected]);
}

#[test]
fn secrets_are_not_shown() {
    let settings = ConfigOverrides::default()
        .with("key_secret", "hunter2")
        .with("store", "redis://user:hunter2@a:b")
        .with("redis_password", "hunter2");
    assert_eq!(format!("{settings:?}"), "{\"key_secret\", \"redis_password\", \"store\"}");
    let expected = "--store or WEIR_STORE: store.redis.nodes: \"…@a:b\": \"b\" is not a port from 1 to 65535";
    assert_eq!(with("", &settings).unwrap_err(), expected);
}
