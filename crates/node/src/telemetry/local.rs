//! What the node decides by itself while Redis cannot answer.

use weir_store::backend::LocalStats;

use super::sampled::Series;

pub(super) const SERIES: [Series; 6] = [
    Series::counter(
        "weir_local_decisions_total",
        "Decisions of this node by itself, with a part of each limit (on_store_failure: local).",
    ),
    Series::gauge("weir_local_keys", "Keys that this node counts by itself; they stay until they expire."),
    Series::gauge("weir_local_bytes", "Bytes of these keys."),
    Series::gauge(
        "weir_local_budget_bytes",
        "Bytes that they may use; 0 until the first call under such a strategy.",
    ),
    Series::counter(
        "weir_local_refusals_total",
        "New keys that found no room; when_full of the strategy answered.",
    ),
    Series::gauge("weir_local_known_keys", "Keys of which this node knows how much was used in Redis."),
];

/// The values, in the order of the series.
pub(super) fn values(stats: LocalStats) -> [f64; 6] {
    let LocalStats { decided, states, known } = stats;
    [
        decided as f64,
        states.keys as f64,
        states.bytes as f64,
        states.budget as f64,
        states.refusals as f64,
        known as f64,
    ]
}
