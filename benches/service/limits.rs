//! The cost of a decision by the number of its limits.

use std::fmt::Write as _;

use crate::Effort;
use crate::plan::plan;
use crate::rows::{Row, row};
use crate::servers::Servers;

/// The limits of the strategy of `n` limits: the first `n`.
const LIMITS: [&str; 8] = [
    "token_bucket: { burst: 1000000000, rate: 1000000000/s }",
    "fixed_window: { limit: 1000000000, window: 1m }",
    "sliding_window: { limit: 1000000000, window: 1m }",
    "fixed_window: { limit: 1000000000, window: 1h }",
    "fixed_window: { limit: 1000000000, window: 1d }",
    "token_bucket: { burst: 1000000000, rate: 1000000000/m }",
    "token_bucket: { burst: 1000000000, rate: 1000000000/h }",
    "fixed_window: { limit: 1000000000, window: 1s }",
];

/// A row on each store: its names, what it is, and its resource.
const ROWS: [([&str; 2], &str, &str); 7] = [
    (["memory-limits2", "redis-limits2"], "unary, 2 limits", "limits2"),
    (["memory-limits3", "redis-limits3"], "unary, 3 limits", "limits3"),
    (["memory-limits4", "redis-limits4"], "unary, 4 limits", "limits4"),
    (["memory-limits5", "redis-limits5"], "unary, 5 limits", "limits5"),
    (["memory-limits6", "redis-limits6"], "unary, 6 limits", "limits6"),
    (["memory-limits7", "redis-limits7"], "unary, 7 limits", "limits7"),
    (["memory-limits8", "redis-limits8"], "unary, 8 limits", "limits8"),
];

/// The strategies, as lines of a configuration.
pub fn strategies() -> String {
    let mut out = String::new();
    for (count, (.., name)) in (2..).zip(ROWS) {
        let limit = |(index, limit): (usize, &&str)| {
            format!("{{ name: l{index}, per: [resource, consumer], {limit} }}")
        };
        let limits: Vec<String> = LIMITS[..count].iter().enumerate().map(limit).collect();
        let _ = writeln!(out, "  {name}: {{ limits: [{}] }}", limits.join(", "));
    }
    out
}

/// The patterns of their resources.
pub fn patterns() -> String {
    ROWS.iter().map(|(.., name)| format!("  - {{ match: {name}, strategy: {name} }}\n")).collect()
}

/// The rows, beside those of one bucket.
pub fn rows(servers: &Servers, effort: Effort) -> Vec<Row> {
    let on_each = |(ids, work, resource): ([&'static str; 2], &'static str, &'static str)| {
        let memory = plan(effort, &servers.memory, &[], resource, 100_000);
        let redis = plan(effort, &servers.single, &[&servers.redis], resource, 100_000);
        [row(ids[0], work, "memory", "memory", memory), row(ids[1], work, "redis", "redis", redis)]
    };
    ROWS.into_iter().flat_map(on_each).collect()
}
