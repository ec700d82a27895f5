//! Metrics of the memory store.

use weir_store::backend::MemoryStats;

use super::sampled::Series;

pub(super) const SERIES: [Series; 5] = [
    Series::gauge(
        "weir_memory_keys",
        "Keys that the memory store holds, with expired ones that are not dropped yet.",
    ),
    Series::gauge("weir_memory_bytes", "Bytes of the memory store's tables, entries and logs."),
    Series::gauge("weir_memory_budget_bytes", "Bytes that the memory store may use."),
    Series::counter(
        "weir_memory_evictions_total",
        "Keys that still counted and were dropped to make room for new ones.",
    ),
    Series::counter(
        "weir_memory_refusals_total",
        "New keys that found no room; the failure policy answered.",
    ),
];

/// The values, in the order of the series.
pub(super) fn values(MemoryStats { keys, bytes, budget, evictions, refusals }: MemoryStats) -> [f64; 5] {
    [keys as f64, bytes as f64, budget as f64, evictions as f64, refusals as f64]
}
