//! The configuration file: what is accepted, and the exact words of every refusal.
//!
//! Here: whole files. Below: a topic each, one table per rule.

mod approximate;
mod bans;
mod costs;
mod every_setting;
mod exceptions;
mod expanded;
mod expiry;
mod files;
mod groups;
mod limits;
mod properties;
#[cfg(feature = "queues")]
mod queues;
mod redis;
mod schema;
mod sections;
mod server_limits;
mod settings;
mod several;
mod strategies;
mod tls;
mod variables;

use std::path::Path;

use weir_config::{
    Config, ConfigOverrides, DenialMessages, EXAMPLE, ListenAddress, MemoryConfig, RedisConfig, ServerConfig,
    StoreConfig, Topology, TransportKind, WhenFull,
};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::key::{KeySecret, Namespace};
use weir_core::strategy::{FailurePolicy, Field, Scope, Tag};
use weir_units::Micros;

/// A `strategies` section with nothing wrong, for files that are about something else.
const STRATEGIES: &str =
    "strategies: { a: { limits: [{ name: each, per: [consumer], uniform: { interval: 1s } }] } }";

fn parse(text: &str) -> Result<Config, String> {
    let settings = weir::features::overrides().with_tls_check(weir_store::tls::check);
    let settings = settings.with_port_tls_check(weir_node::tls::check);
    Config::parse(text, "weir.yaml", &settings).map_err(|errors| errors.to_string())
}

fn accepted(text: &str) -> Config {
    parse(text).unwrap_or_else(|errors| panic!("{text}\nis refused:\n{errors}"))
}

/// Each text is refused with exactly these lines, written without the name of the file.
fn refused(cases: &[(&str, &str)], file_of: impl Fn(&str) -> String) {
    for (text, expected) in cases {
        let expected: Vec<String> = expected.lines().map(|line| format!("weir.yaml:{line}")).collect();
        match parse(&file_of(text)) {
            Ok(_) => panic!("{text}\nis accepted"),
            Err(errors) => assert_eq!(errors, expected.join("\n"), "\nof {text}"),
        }
    }
}

/// As [`refused`], of rows of text: what a file says, and behind ` => `, or in indented lines below, what is said of it.
fn refused_rows(file_of: impl Fn(&str) -> String, rows: &str) {
    let mut cases: Vec<(&str, String)> = Vec::new();
    for line in rows.trim_start().lines() {
        match (line.strip_prefix("    "), line.split_once(" => "), cases.last_mut()) {
            (Some(said), _, Some((_, lines))) => lines.extend([said, "\n"]),
            (None, Some((text, said)), _) => cases.push((text, said.to_owned())),
            _ => cases.push((line, String::new())),
        }
    }
    let cases: Vec<_> = cases.iter().map(|(text, said)| (*text, said.trim_end())).collect();
    refused(&cases, file_of);
}

/// Each value is refused at this place, as it is written and then with exactly these words.
fn values_refused(place: &str, cases: &[(&str, &str)], file_of: impl Fn(&str) -> String) {
    for (value, reason) in cases {
        refused(&[(value, &format!("{place}: \"{value}\"{reason}"))], &file_of);
    }
}

/// A file of one section, from line 1 on.
fn section(text: &str) -> String {
    format!("{text}\n{STRATEGIES}")
}

/// A file of one limit, which stands in line 4 after its name and scope.
fn limit(text: &str) -> String {
    format!("strategies:\n  a:\n    limits:\n      - {{ name: l, per: [consumer], {text} }}")
}

/// A file of one strategy, in line 2.
fn strategy(text: &str) -> String {
    format!("strategies:\n  {text}")
}

/// As a file has it that says nothing of debts: they go as far above the limit as it is large.
fn configured(algorithm: Algorithm) -> Algorithm {
    algorithm.with_max_debt(Some(algorithm.limit()))
}

fn algorithm(text: &str) -> Algorithm {
    accepted(&limit(text)).rules.strategies()[0].algorithms()[0]
}

#[test]
fn the_example_is_what_runs_without_a_file() {
    let config = Config::built_in();
    assert!(config.sources.is_empty());
    assert_eq!(config.server, ServerConfig::default(), "the example shows the defaults");
    assert_eq!(config.store, StoreConfig::Memory(MemoryConfig::default()));
    assert_eq!(config.messages, DenialMessages::default());
    assert_eq!(config.key_secret, None);

    let resolved = config.rules.resolve("zewtopia.com/tigerfeeding", "").unwrap();
    assert_eq!(resolved.strategy.name(), "tiger-feeding");
    assert_eq!(resolved.strategy.on_store_failure(), FailurePolicy::Deny);
    let [everyone, each] = resolved.strategy.limits() else { panic!("two limits") };
    assert_eq!((&*everyone.name, &*each.name), ("everyone", "each"));
    assert_eq!(everyone.scope, Scope::new(&[Field::Resource]));
    assert_eq!(each.scope, Scope::new(&[Field::Resource, Field::Consumer]));
    assert_eq!(everyone.algorithm, configured(Algorithm::sliding_log(100, Micros::from_secs(10)).unwrap()));
    assert_eq!(each.algorithm, configured(Algorithm::uniform(Micros::from_secs(10)).unwrap()));
    let names: Vec<&str> = config.rules.strategies().iter().map(|strategy| strategy.name()).collect();
    assert_eq!(names, ["tiger-feeding", "api", "search"]);
    for (resource, strategy) in [("api/search", "search"), ("api/orders", "api"), ("api/a/b", "api")] {
        assert_eq!(config.rules.resolve(resource, "").unwrap().strategy.name(), strategy);
    }
}

/// A file that says everything, in block style, says it exactly.
#[test]
fn every_key_has_its_place() {
    let config = accepted(
        r#"
server:
  listen: "[::]:9000"
  admin: 0.0.0.0:9001
  transport: tonic
  workers: 1_024
  reflection: false
  admin_service: true
  ready_needs_store: true
  drain_delay: 30s
  drain_timeout: 10m
store:
  redis:
    nodes:
      - redis://one
      - redis://two:7000/
      - redis://[::1]:7001
    topology: cluster
    deadline: 5ms
    connect_timeout: 1m
    max_waiting: 7
    denials_max_age: 0s
  key_secret: known to nobody else
  namespace: zoo-1
strategies:
  login:
    single_slot: true
    on_store_failure: allow
    limits:
      - name: all
        per: []
        fixed_window: { limit: 5, window: 1m30s, anchored: true, count_denied: true }
      - name: person
        per: [consumer, resource]
        interval_refill: { capacity: 10, refill: 2, period: 1h, aligned: true }
  other/one.2: { limits: [{ name: l, per: [consumer], gcra: { rate: 5/s, burst: 2 } }] }
resources:
  - match: zoo/*
    strategy: other/one.2
    group: animals
  - { match: zoo/login, strategy: login }
messages:
  limited: "Wait {wait} ({seconds}): {cost} of {limit}"
  never: ""
"#,
    );
    let server = ServerConfig {
        listen: ListenAddress::Tcp("[::]:9000".parse().unwrap()),
        admin: "0.0.0.0:9001".parse().unwrap(),
        transport: TransportKind::Tonic,
        workers: 1024,
        reflection: false,
        admin_service: true,
        ready_needs_store: true,
        drain_delay: Micros::from_secs(30),
        drain_timeout: Micros::from_secs(600),
        ..ServerConfig::default()
    };
    assert_eq!(config.server, server);
    let redis = RedisConfig {
        namespace: Namespace::new("zoo-1").unwrap(),
        nodes: ["redis://one:6379", "redis://two:7000", "redis://[::1]:7001"].map(String::from).to_vec(),
        topology: Topology::Cluster,
        deadline: Micros::from_millis(5),
        connect_timeout: Micros::from_secs(60),
        max_waiting: 7,
        denials_max_age: Micros::ZERO,
        ..RedisConfig::default()
    };
    assert_eq!(config.store, StoreConfig::Redis(redis));
    assert_eq!(config.key_secret, Some(KeySecret::from_text("known to nobody else")));
    assert_eq!(config.namespace, Namespace::new("zoo-1").unwrap());
    assert_eq!(config.messages.limited, "Wait {wait} ({seconds}): {cost} of {limit}");
    assert_eq!(config.messages.never, "");
    assert_eq!(config.sources, [Path::new("weir.yaml")]);

    let login = config.rules.resolve("zoo/login", "").unwrap();
    assert_eq!((login.index, login.group), (0, None));
    assert_eq!(*login.strategy.tag(), Tag::Strategy("login".into()));
    assert_eq!(login.strategy.on_store_failure(), FailurePolicy::Allow);
    let window = Algorithm::fixed_window(5, Micros::from_secs(90), true, true).unwrap();
    let refill = Algorithm::interval_refill(10, 2, Micros::from_secs(3600), true).unwrap();
    assert_eq!(login.strategy.algorithms(), [configured(window), configured(refill)]);
    let other = config.rules.resolve("zoo/tiger", "").unwrap();
    assert_eq!((other.index, other.group), (1, Some("animals")));
    assert_eq!(other.strategy.on_store_failure(), FailurePolicy::Error);
    let gcra = Algorithm::bucket(2, Rate { count: 5, period: Micros::from_secs(1) }).unwrap();
    assert_eq!(other.strategy.algorithms(), [configured(gcra)]);
}

#[test]
fn sections_may_be_empty_or_absent() {
    let config = accepted(&section("server:\nstore: { memory: }\nresources:\nmessages: {}"));
    assert_eq!(config.server, ServerConfig::default());
    assert_eq!(config.store, StoreConfig::Memory(MemoryConfig::default()));
    assert!(config.rules.resolve("x", "").is_err());
    assert!(config.rules.resolve("x", "a").is_ok());

    let config = accepted(&section("store: { memory: { budget: 1MiB, when_full: refuse } }"));
    let memory = MemoryConfig { budget: 1 << 20, when_full: WhenFull::Refuse, share: None, id_share: None };
    assert_eq!(config.store, StoreConfig::Memory(memory));
    let config = accepted(&section("store: { memory: { budget: 1MiB, share: 1MiB } }"));
    let memory = MemoryConfig { budget: 1 << 20, share: Some(1 << 20), ..MemoryConfig::default() };
    assert_eq!(config.store, StoreConfig::Memory(memory));
}

/// One mistake must not hide another: one run reports all of them, in the order of the file.
#[test]
fn one_run_tells_every_mistake() {
    let text = r#"
server: { listen: here, workers: 2000, drain_timeout: 10 }
store:
  memory: { budgte: 1GiB }
strategies:
  login:
    limits:
      - { name: all, per: [resource], uniform: { interval: 0s } }
      - { name: all, per: [consumer], token_bucket: { rate: 5 }, gcra: { burst: 1 } }
      - { per: [Country] }
    on_store_failure: local
  login: {}
  "a b": { limits: [{ name: x, per: [resource, resource], sliding_log: { limit: 20000, window: 1s } }] }
  wide:
    limits:
      - { name: r, per: [resource], fixed_window: { limit: 1, window: 0s } }
      - { name: c, per: [consumer], uniform: { interval: 1s } }
resources:
  - { match: "*/x", strategy: login }
  - { match: x, strategy: logn }
overrides: [{ consumer: x }]
access: { deny: [a*b] }
"#;
    let expected = r#"
weir.yaml:2:19: server.listen: "here" is not an IP address with a port, such as 127.0.0.1:8081 or [::1]:8081, nor unix:PATH
weir.yaml:2:34: server.workers: 2000 is out of bounds: it must be from 0 to 1024
weir.yaml:2:55: server.drain_timeout: "10" has no unit; write one of us, ms, s, m, h, d, w after it, such as 10s
weir.yaml:4:13: store.memory.budgte: unknown key; did you mean `budget`?
weir.yaml:8:60: strategies.login.limits[0].uniform.interval: 0 is out of bounds: it must be at least 1 microsecond
weir.yaml:9:17: strategies.login.limits[1].name: two limits are named `all`
weir.yaml:9:61: strategies.login.limits[1].token_bucket.rate: "5" is not a rate; write COUNT/DURATION, such as 30/1m or 5/s
weir.yaml:9:66: strategies.login.limits[1].gcra: a limit has one algorithm, and this one has `token_bucket` already
weir.yaml:9:72: strategies.login.limits[1].gcra.rate: is missing; say how fast units come back, such as 30/1m
weir.yaml:10:9: strategies.login.limits[2]: has no algorithm; give it one of uniform, token_bucket, gcra, leaky_bucket, leaky_queue, warm_up, fixed_window, interval_refill, sliding_window, bucketed_window, sliding_log
weir.yaml:10:9: strategies.login.limits[2].name: is missing; denied callers see it in `denied_by`
weir.yaml:10:17: strategies.login.limits[2].per[0]: "Country" is no field of a request: resource, consumer, or the name of an attribute, which is 1 to 64 of the characters a-z 0-9 _ - and begins with a letter
weir.yaml:11:23: strategies.login.on_store_failure: `local` needs the share of each limit; write { local: { share: 1/4 } }
weir.yaml:12:3: strategies.login: is given twice; the first is at 6:3
weir.yaml:13:3: strategies."a b": the name `a b` must be 1 to 128 of the characters A-Z a-z 0-9 . _ - /
weir.yaml:13:48: strategies."a b".limits[0].per[1]: `resource` is listed twice
weir.yaml:13:81: strategies."a b".limits[0].sliding_log.limit: 20000 is out of bounds: a log keeps an entry per call, so its limit is at most 10000; use token_bucket or fixed_window above it
weir.yaml:16:71: strategies.wide.limits[0].fixed_window.window: 0 is out of bounds: it must be at least 1 microsecond
weir.yaml:19:14: resources[0].match: "*/x": a * can stand only at the end of a pattern
weir.yaml:20:27: resources[1].strategy: there is no strategy "logn"; did you mean `login`?
weir.yaml:21:13: overrides[0].limits: is missing; say which limits have other numbers
weir.yaml:21:13: overrides[0].strategy: is missing; name one of `strategies`
weir.yaml:22:18: access.deny[0]: "a*b": a * can stand only at the end of a pattern"#;
    assert_eq!(parse(text).unwrap_err(), expected.trim_start());
}

#[test]
fn errors_can_be_read_one_by_one() {
    let errors = Config::parse("server: 5", "here", &ConfigOverrides::default()).unwrap_err();
    assert_eq!(errors.source(), "here");
    let paths: Vec<&str> = errors.errors().iter().map(|error| error.path.as_str()).collect();
    assert_eq!(paths, ["", "server"]);
    assert_eq!(EXAMPLE.lines().filter(|line| line.starts_with("strategies:")).count(), 1);
}
