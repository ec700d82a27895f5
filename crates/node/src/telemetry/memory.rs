//! Metrics of the memory store.

use prometheus::proto::MetricType;
use weir_store::backend::MemoryStats;

use super::sampled::Series;

pub(super) const SERIES: [Series; 5] = [
    Series {
        name: "weir_memory_keys",
        help: "Keys that the memory store holds, with expired ones that are not dropped yet.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "weir_memory_bytes",
        help: "Bytes of the memory store's tables, entries and logs.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "weir_memory_budget_bytes",
        help: "Bytes that the memory store may use.",
        kind: MetricType::GAUGE,
    },
    Series {
        name: "weir_memory_evictions_total",
        help: "Keys that still counted and were dropped to make room for new ones.",
        kind: MetricType::COUNTER,
    },
    Series {
        name: "weir_memory_refusals_total",
        help: "New keys that found no room; the failure policy answered.",
        kind: MetricType::COUNTER,
    },
];

/// The values, in the order of the series.
pub(super) fn values(MemoryStats { keys, bytes, budget, evictions, refusals }: MemoryStats) -> [f64; 5] {
    [keys as f64, bytes as f64, budget as f64, evictions as f64, refusals as f64]
}
