//! Few calls: what a decision costs where nothing arrives together, with and without `gather`.

use weir_load::Plan;

use crate::Effort;
use crate::plan::{FEW, open, plan};
use crate::rows::{Row, row};
use crate::servers::Servers;

/// So few calls a second that nearly each comes alone.
pub const LONELY: f64 = 2_000.0;

const SOME: f64 = 5_000.0;

/// The rows of both stores. That of Redis with 10,000 calls a second is among those of clusters.
pub fn rows(servers: &Servers, effort: Effort) -> Vec<Row> {
    let redis = [&servers.redis];
    let memory = plan(effort, &servers.memory, &[], "allow", 100_000);
    let single = plan(effort, &servers.single, &redis, "allow", 100_000);
    let gathering = plan(effort, &servers.gathering, &redis, "allow", 100_000);
    let at = |id, work, server, against, plan: &Plan, rate| row(id, work, server, against, open(plan, rate));
    vec![
        at("memory-2", "unary, 2,000 calls/s", "memory", "memory-2", &memory, LONELY),
        at("redis-2", "unary, 2,000 calls/s", "redis", "redis-2", &single, LONELY),
        at("gather-2", "unary, 2,000 calls/s, gather 1 ms", "redis", "redis-2", &gathering, LONELY),
        at("memory-5", "unary, 5,000 calls/s", "memory", "memory-5", &memory, SOME),
        at("redis-5", "unary, 5,000 calls/s", "redis", "redis-5", &single, SOME),
        at("gather-5", "unary, 5,000 calls/s, gather 1 ms", "redis", "redis-5", &gathering, SOME),
        at("gather-10", "unary, 10,000 calls/s, gather 1 ms", "redis", "redis-10", &gathering, FEW),
    ]
}
