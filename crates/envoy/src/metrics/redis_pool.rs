//! The connections to Redis, under the names of envoyproxy/ratelimit.

use prometheus::proto::MetricType;
use weir_node::telemetry::sampled::Series;
use weir_store::backend::ConnectionStats;

pub(super) const SERIES: [Series; 3] = [
    Series {
        name: "ratelimit_redis_pool_cx_active",
        help: "Connections to Redis that are open now.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "ratelimit_redis_pool_cx_total",
        help: "Connections to Redis that were opened.",
        kind: MetricType::COUNTER,
    },
    Series {
        name: "ratelimit_redis_pool_cx_local_close",
        help: "Connections to Redis that have ended.",
        kind: MetricType::COUNTER,
    },
];

/// Returns the values of the series.
pub(super) fn values(ConnectionStats { opened, closed }: ConnectionStats) -> [f64; 3] {
    [opened.saturating_sub(closed) as f64, opened as f64, closed as f64]
}
