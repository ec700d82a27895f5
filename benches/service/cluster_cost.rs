//! The cost of a cluster beside a single Redis: at full speed, and at the same rate of calls.

use weir_load::Plan;

use crate::Effort;
use crate::plan::{FEW, open, plan};
use crate::processes::Process;
use crate::rows::{Row, row};
use crate::servers::Servers;

/// Calls a second that a single Redis and a cluster are both asked, and the rows of it.
pub struct Rate {
    per_second: f64,
    pub work: &'static str,
    pub on_one: &'static str,
    pub on_cluster: &'static str,
}

pub const RATES: [Rate; 3] = [
    Rate { per_second: FEW, work: "unary, 10,000 calls/s", on_one: "redis-10", on_cluster: "cluster-10" },
    Rate {
        per_second: 20_000.0,
        work: "unary, 20,000 calls/s",
        on_one: "redis-20",
        on_cluster: "cluster-20",
    },
    Rate {
        per_second: 40_000.0,
        work: "unary, 40,000 calls/s",
        on_one: "redis-40",
        on_cluster: "cluster-40",
    },
];

/// A single Redis and a cluster, as fast as they can and with as many calls a second as each other.
pub fn rows(servers: &Servers, effort: Effort) -> Vec<Row> {
    let nodes: Vec<&Process> = servers.nodes.iter().collect();
    let single = plan(effort, &servers.single, &[&servers.redis], "allow", 100_000);
    let cluster = plan(effort, &servers.cluster, &nodes, "allow", 100_000);
    let of_one = plan(effort, &servers.cluster_of_one, &[&servers.only_node], "allow", 100_000);
    // More than the service can work on: what it costs when it has no time left.
    let saturated = |plan: &Plan| Plan { in_flight: 1_024, ..plan.clone() };
    let mut rows = vec![
        row("redis-again", "unary, 100 k keys, once more", "redis", "redis", single.clone()),
        row("cluster", "unary, 100 k keys", "redis cluster", "redis-again", cluster.clone()),
        row("cluster-one", "unary, 100 k keys", "redis cluster of one", "redis-again", of_one),
        row("redis-full", "unary, 1,024 in flight", "redis", "redis", saturated(&single)),
        row("cluster-full", "unary, 1,024 in flight", "redis cluster", "redis-full", saturated(&cluster)),
    ];
    for Rate { per_second, work, on_one, on_cluster } in RATES {
        rows.push(row(on_one, work, "redis", "redis-10", open(&single, per_second)));
        rows.push(row(on_cluster, work, "redis cluster", on_one, open(&cluster, per_second)));
    }
    rows
}
