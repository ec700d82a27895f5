//! The goals, and the results of this run.

use std::fmt::Write as _;

use crate::cluster_cost::{RATES, Rate};
use crate::rows::Sample;
use crate::servers::Servers;
use crate::table::thousands;

struct Goal {
    work: String,
    goal: &'static str,
    reached: String,
    is_met: bool,
}

pub fn text(samples: &[Sample], servers: &Servers) -> String {
    let mut out = "| work | goal | reached | |\n|---|---|---|---|\n".to_owned();
    for Goal { work, goal, reached, is_met } in goals(samples, servers) {
        let verdict = if is_met { "met" } else { "**missed**" };
        let _ = writeln!(out, "| {work} | {goal} | {reached} | {verdict} |");
    }
    out
}

fn goals(samples: &[Sample], servers: &Servers) -> Vec<Goal> {
    let mut goals = on_memory(samples, servers);
    goals.extend(on_redis(samples));
    goals.extend(on_clusters(samples));
    goals
}

fn on_memory(samples: &[Sample], servers: &Servers) -> Vec<Goal> {
    let of = |id| sample(samples, id);
    let memory = of("memory");
    let bare = memory.server_us / of("bare").server_us;
    let by_tonic = of("tonic").server_us / of("bare").server_us;
    let many_keys = of("memory-many").server_us / of("memory-1k").server_us;
    let strategies = of("memory-strategies").server_us / memory.server_us;
    let mut goals = vec![
        at_most("memory, unary", "≤ 5 µs CPU", memory.server_us, 5.0, " µs"),
        at_most("memory, unary", "≤ 1.1 × bare tonic's CPU", bare, 1.1, " ×"),
        at_most("memory, unary, `transport: tonic`", "≤ 1.5 × bare tonic's CPU", by_tonic, 1.5, " ×"),
    ];
    if let Some(throttlecrab) = samples.iter().find(|it| it.id == "throttlecrab") {
        let ratio = memory.per_second / throttlecrab.per_second;
        goals.push(at_least("memory, unary", "≥ 3 × throttlecrab", ratio, 3.0));
    }
    for (id, work) in [("memory-batch", "memory, batches of 100"), ("memory-stream", "memory, streams")] {
        let sample = of(id);
        let reached = format!("{}/s", thousands(sample.per_second));
        let is_met = sample.per_second >= 3e6;
        goals.push(Goal { work: work.into(), goal: "≥ 3 M decisions/s", reached, is_met });
        goals.push(at_most(work, "≤ 0.5 µs CPU", sample.server_us, 0.5, " µs"));
    }
    goals.extend([
        at_most("memory, many keys", "≤ 1.3 × the CPU of 1 k keys", many_keys, 1.3, " ×"),
        at_most("memory, 10,000 strategies", "≤ 1.1 × the CPU of 3", strategies, 1.1, " ×"),
        at_most("memory", "≤ 64 B a key", servers.bytes_per_key, 64.0, " B of RSS a key"),
    ]);
    goals
}

fn on_redis(samples: &[Sample]) -> Vec<Goal> {
    let of = |id| sample(samples, id);
    let (redis, hot, open) = (of("redis"), of("redis-hot-second"), of("redis-10"));
    let flood = of("redis-deny").per_second / of("memory-deny").per_second;
    let (in_redis, of_denied) = (" µs in Redis a decision", of("redis-deny").redis_us);
    vec![
        at_most("Redis, unary", "≤ 6 µs CPU", redis.server_us, 6.0, " µs"),
        at_most("Redis, unary", "≤ 3.5 µs in Redis", redis.redis_us, 3.5, " µs"),
        at_most("Redis, one key", "Redis' load bounded by the limit", hot.redis_us, 0.5, in_redis),
        at_least("Redis, denied", "≥ 0.9 × memory's speed", flood, 0.9),
        at_most("Redis, denied", "Redis nearly idle", of_denied, 0.3, in_redis),
        at_most("Redis, 10,000 calls/s", "p99 ≤ 200 µs", open.p99_us, 200.0, " µs"),
        at_most("Redis, 10,000 calls/s", "p99.9 ≤ 1 ms", open.p99_9_us, 1_000.0, " µs"),
    ]
}

fn on_clusters(samples: &[Sample]) -> Vec<Goal> {
    let ratio = |work: &str, cluster, single| {
        let (cluster, single) = (sample(samples, cluster), sample(samples, single));
        let all = cluster.cpu_us() / single.cpu_us();
        let reached =
            format!("{all:.2} × (the service by itself {:.2} ×)", cluster.server_us / single.server_us);
        Goal { work: work.into(), goal: "≤ 1.2 × the CPU of one Redis", reached, is_met: all <= 1.2 }
    };
    let mut goals = vec![
        ratio("Redis Cluster, 128 in flight", "cluster", "redis-again"),
        ratio("Redis Cluster, 1,024 in flight", "cluster-full", "redis-full"),
        ratio("Redis Cluster of one primary", "cluster-one", "redis-again"),
    ];
    goals.extend(RATES.map(|Rate { work, on_one, on_cluster, .. }| {
        ratio(&format!("Redis Cluster, {work}"), on_cluster, on_one)
    }));
    goals
}

fn sample(samples: &[Sample], id: &str) -> Sample {
    samples.iter().find(|it| it.id == id).cloned().expect("goals are about rows")
}

fn at_most(work: &str, goal: &'static str, value: f64, most: f64, unit: &str) -> Goal {
    Goal { work: work.into(), goal, reached: format!("{value:.2}{unit}"), is_met: value <= most }
}

fn at_least(work: &str, goal: &'static str, ratio: f64, least: f64) -> Goal {
    Goal { work: work.into(), goal, reached: format!("{ratio:.2} ×"), is_met: ratio >= least }
}
