//! The metrics of the place where states live, whichever it is.

use weir_store::backend::{Backend, BackendStats, LocalStats, MemoryStats};

use super::sampled::{Series, sampled};
use super::{Metrics, store};

const MEMORY: [Series; 5] = [
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

const LOCAL: [Series; 6] = [
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

const SINGLE_SLOT_CALLS: [Series; 1] = [Series::counter(
    "weir_redis_single_slot_calls_total",
    "Script calls to cluster nodes that get one call for each slot.",
)];

impl Metrics {
    /// Registers the numbers that the backend has, and the health of its nodes.
    pub fn show_backend<B: Backend>(&self, backend: &B) -> Result<(), prometheus::Error> {
        let has = backend.stats();
        if has.memory.is_some() {
            self.show_stats(backend, MEMORY, |stats| {
                let MemoryStats { keys, bytes, budget, evictions, refusals } =
                    stats.memory.unwrap_or_default();
                [keys as f64, bytes as f64, budget as f64, evictions as f64, refusals as f64]
            })?;
        }
        if has.single_slot_calls.is_some() {
            self.show_stats(backend, SINGLE_SLOT_CALLS, |stats| {
                [stats.single_slot_calls.unwrap_or_default() as f64]
            })?;
        }
        if has.local.is_some() {
            self.show_stats(backend, LOCAL, |stats| {
                let LocalStats { decided, states, known } = stats.local.unwrap_or_default();
                let [keys, bytes, budget] = [states.keys, states.bytes, states.budget].map(|it| it as f64);
                [decided as f64, keys, bytes, budget, states.refusals as f64, known as f64]
            })?;
        }
        if backend.status_changes().is_some() {
            let backend = backend.clone();
            self.show_families(store::FAMILIES, move || store::metrics(&backend.status()))?;
        }
        Ok(())
    }

    fn show_stats<B: Backend, const N: usize>(
        &self,
        backend: &B,
        series: [Series; N],
        values: fn(BackendStats) -> [f64; N],
    ) -> Result<(), prometheus::Error> {
        let backend = backend.clone();
        self.registry.register(Box::new(sampled(series, move || values(backend.stats()))?))
    }
}
