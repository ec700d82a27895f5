//! What was aimed at, and what was reached in this run.

use std::fmt::Write as _;

use crate::rows::Sample;
use crate::servers::Servers;
use crate::table::thousands;

struct Goal {
    work: &'static str,
    goal: &'static str,
    reached: String,
    is_met: bool,
}

pub fn of(samples: &[Sample], servers: &Servers) -> String {
    let mut out = "| work | goal | reached | |\n|---|---|---|---|\n".to_owned();
    for Goal { work, goal, reached, is_met } in goals(samples, servers) {
        let verdict = if is_met { "met" } else { "**missed**" };
        let _ = writeln!(out, "| {work} | {goal} | {reached} | {verdict} |");
    }
    out
}

fn goals(samples: &[Sample], servers: &Servers) -> Vec<Goal> {
    let find = |id: &str| samples.iter().find(|it| it.id == id);
    let of = |id: &str| find(id).cloned().unwrap_or_default();
    let goal = |work, goal, reached, is_met| Goal { work, goal, reached, is_met };
    let at_most = |work, text, value: f64, most: f64, unit: &str| {
        goal(work, text, format!("{value:.2}{unit}"), value <= most)
    };
    let (memory, redis) = (of("memory"), of("redis"));
    let cpu = |id: &str| of(id).server_us + of(id).redis_us;
    let mut goals = vec![
        at_most("memory, unary", "≤ 5 µs CPU", memory.server_us, 5.0, " µs"),
        at_most(
            "memory, unary",
            "≤ 1.1 × bare tonic's CPU",
            memory.server_us / of("bare").server_us,
            1.1,
            " ×",
        ),
    ];
    if let Some(throttlecrab) = find("throttlecrab") {
        let ratio = memory.per_second / throttlecrab.per_second;
        goals.push(goal("memory, unary", "≥ 3 × throttlecrab", format!("{ratio:.2} ×"), ratio >= 3.0));
    }
    for (id, work) in [("memory-batch", "memory, batches of 100"), ("memory-stream", "memory, streams")] {
        let sample = of(id);
        let rate = format!("{}/s", thousands(sample.per_second));
        goals.push(goal(work, "≥ 3 M decisions/s", rate, sample.per_second >= 3e6));
        goals.push(at_most(work, "≤ 0.5 µs CPU", sample.server_us, 0.5, " µs"));
    }
    let hot = of("redis-hot-second");
    let flood = of("redis-deny").per_second / of("memory-deny").per_second;
    let flat = of("memory-many").server_us / of("memory-1k").server_us;
    let open = of("redis-open");
    goals.extend([
        at_most("Redis, unary", "≤ 6 µs CPU", redis.server_us, 6.0, " µs"),
        at_most("Redis, unary", "≤ 3.5 µs in Redis", redis.redis_us, 3.5, " µs"),
        at_most(
            "Redis, one key",
            "Redis' load bounded by the limit",
            hot.redis_us,
            0.5,
            " µs in Redis a decision",
        ),
        at_most(
            "Redis Cluster",
            "≤ 1.2 × the CPU of one Redis",
            cpu("cluster") / cpu("redis-again"),
            1.2,
            " ×",
        ),
        at_most(
            "Redis Cluster, 1,024 in flight",
            "≤ 1.2 × the CPU of one Redis",
            cpu("cluster-full") / cpu("redis-full"),
            1.2,
            " ×",
        ),
        goal("Redis, denied", "≥ 0.9 × memory's speed", format!("{flood:.2} ×"), flood >= 0.9),
        at_most(
            "Redis, denied",
            "Redis nearly idle",
            of("redis-deny").redis_us,
            0.3,
            " µs in Redis a decision",
        ),
        at_most("Redis, 10,000 calls/s", "p99 ≤ 200 µs", open.p99_us, 200.0, " µs"),
        at_most("Redis, 10,000 calls/s", "p99.9 ≤ 1 ms", open.p99_9_us, 1_000.0, " µs"),
        at_most("memory, many keys", "≤ 1.3 × the CPU of 1 k keys", flat, 1.3, " ×"),
        at_most(
            "memory, 10,000 strategies",
            "≤ 1.1 × the CPU of 3",
            of("memory-strategies").server_us / memory.server_us,
            1.1,
            " ×",
        ),
        at_most("memory", "≤ 64 B a key", servers.bytes_per_key, 64.0, " B of RSS a key"),
    ]);
    goals
}
