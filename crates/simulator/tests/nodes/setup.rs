//! The strategies of a simulation, and how its nodes are configured.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use weir_config::{Config, ConfigOverrides, RedisConfig, StoreConfig, Topology};
use weir_core::approximate::ApproximateBound;
use weir_core::strategy::{Rules, Strategy};
use weir_units::Micros;

use crate::network::{FIRST_PORT, HOST};

/// Strategies that Redis decides exactly, with their limits.
pub(crate) const EXACT: [(&str, &str); 9] = [
    ("window", "{ name: each, per: [consumer], fixed_window: { limit: 9, window: 2s } }"),
    ("log", "{ name: each, per: [consumer], sliding_log: { limit: 7, window: 2s } }"),
    ("bucket", "{ name: each, per: [consumer], token_bucket: { rate: 4/s, burst: 6 } }"),
    ("even", "{ name: each, per: [consumer], uniform: { interval: 300ms } }"),
    ("queue", "{ name: each, per: [consumer], leaky_queue: { rate: 5/s, burst: 4, delay: 1 } }"),
    ("sliding", "{ name: each, per: [consumer], sliding_window: { limit: 8, window: 2s } }"),
    ("slots", "{ name: each, per: [consumer], bucketed_window: { limit: 8, window: 2s, buckets: 8 } }"),
    ("refill", "{ name: each, per: [consumer], interval_refill: { capacity: 6, refill: 3, period: 1s } }"),
    (
        "both",
        "{ name: burst, per: [consumer], token_bucket: { rate: 5/s, burst: 5 } }, \
         { name: long, per: [consumer], fixed_window: { limit: 20, window: 5s } }",
    ),
];

/// The strategy that nodes decide by themselves while Redis does not answer.
pub(crate) const LOCAL: &str = "local";

/// The limit of the strategy with a `local` policy, its window in µs, and the part of a node.
pub(crate) const LOCAL_LIMIT: u64 = 9;
pub(crate) const LOCAL_WINDOW: u64 = 2_000_000;
pub(crate) const LOCAL_PART: u64 = 3;

/// The strategy that nodes count on their own.
pub(crate) const COUNTED: &str = "counted";

/// The limit of the strategy that nodes count.
pub(crate) const COUNTED_LIMIT: u64 = 30;

/// The bound of what nodes admit above it.
pub(crate) fn counted_bound() -> ApproximateBound {
    ApproximateBound::new(8, 3, Micros::from_secs(1)).unwrap_or_else(|error| panic!("{error}"))
}

/// The strategy of permits, and how many there are.
pub(crate) const PERMITS: &str = "permits";
pub(crate) const PERMITS_LIMIT: u64 = 4;

/// The strategy of a token budget, the name of its cost, and its limit.
pub(crate) const BUDGET: &str = "budget";
pub(crate) const BUDGET_COST: &str = "tokens";
pub(crate) const BUDGET_LIMIT: u64 = 80;

/// The configuration of all nodes.
pub(crate) struct SimulatedConfig {
    pub(crate) redis: RedisConfig,
    pub(crate) rules: Arc<Rules>,
}

impl SimulatedConfig {
    /// On so many servers: a cluster, if there are several.
    pub(crate) fn on(servers: usize) -> Self {
        // Read once: the ids of strategies, which say which keys collide in caches, are then the same in each run.
        static READ: OnceLock<SimulatedConfig> = OnceLock::new();
        let Self { redis, rules } = READ.get_or_init(Self::read);
        let ports = (0..servers as u16).map(|server| FIRST_PORT + server);
        let redis = RedisConfig {
            nodes: ports.map(|port| format!("redis://{HOST}:{port}")).collect(),
            topology: if servers > 1 { Topology::Cluster } else { Topology::Single },
            ..redis.clone()
        };
        Self { redis, rules: Arc::clone(rules) }
    }

    fn read() -> Self {
        let config = Config::parse(&text(), "simulation", &ConfigOverrides::default());
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        let StoreConfig::Redis(redis) = config.store else { panic!("the store is Redis") };
        Self { redis, rules: Arc::new(config.rules) }
    }
}

/// A strategy by its name.
pub(crate) fn strategy<'r>(rules: &'r Rules, name: &str) -> Option<&'r Arc<Strategy>> {
    rules.strategies().iter().find(|strategy| strategy.name() == name)
}

fn text() -> String {
    let mut text = format!(
        "store: {{ redis: {{ nodes: [\"redis://{HOST}:{FIRST_PORT}\"], deadline: 80ms, connect_timeout: 150ms }} }}\n\
         strategies:\n"
    );
    for (name, limits) in EXACT {
        let _ = writeln!(text, "  {name}: {{ on_store_failure: error, limits: [{limits}] }}");
    }
    let _ = writeln!(
        text,
        "  {LOCAL}: {{ on_store_failure: {{ local: {{ share: 1/3, when_full: deny }} }}, limits: [{{ name: each, \
         per: [consumer], sliding_log: {{ limit: {LOCAL_LIMIT}, window: 2s }} }}] }}\n  \
         {COUNTED}: {{ on_store_failure: deny, approximate: {{ max_over: 8, nodes: 3, sync: 50ms }}, limits: [{{ \
         name: each, per: [consumer], fixed_window: {{ limit: {COUNTED_LIMIT}, window: 1s }} }}] }}\n  \
         {PERMITS}: {{ on_store_failure: deny, concurrency: {{ limit: {PERMITS_LIMIT}, per: [consumer], ttl: 1s, \
         max_ttl: 3s }} }}\n\
         \x20 {BUDGET}: {{ on_store_failure: error, hold: {{ max: 4s, known_for: 1m }}, limits: [{{ name: calls, per: \
         [consumer], cost: 1, sliding_log: {{ limit: 1000, window: 1h }} }}, {{ name: tokens, per: [consumer], cost: \
         {BUDGET_COST}, fixed_window: {{ limit: {BUDGET_LIMIT}, window: 1h, anchored: true }} }}] }}\n\
         resources: [{{ match: \"*\", strategy: window }}]\n"
    );
    text
}
