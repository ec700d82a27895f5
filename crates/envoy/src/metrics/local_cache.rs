//! The cache of denials, under the names of the local cache of envoyproxy/ratelimit.

use prometheus::proto::MetricType;
use weir_node::telemetry::sampled::Series;
use weir_store::backend::DenialStats;

pub(super) const SERIES: [Series; 3] = [
    Series {
        name: "ratelimit_localcache_hitCount",
        help: "Calls that the cache of denials answered.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "ratelimit_localcache_missCount",
        help: "Calls for which Redis was asked.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "ratelimit_localcache_lookupCount",
        help: "Lookups in the cache of denials.",
        kind: MetricType::GAUGE,
    },
];

/// Returns the values of the series.
pub(super) fn values(DenialStats { hits, misses }: DenialStats) -> [f64; 3] {
    [hits as f64, misses as f64, hits.saturating_add(misses) as f64]
}
