//! Metrics of the control plane that sends Envoy's domains.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use prometheus::core::Collector;
use weir_node::telemetry::sampled::{Series, sampled};
use weir_units::Micros;

/// Counts of the control plane's client. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct XdsMetrics(Arc<XdsCounts>);

#[derive(Debug, Default)]
struct XdsCounts {
    connected: AtomicBool,
    accepted: AtomicU64,
    refused: AtomicU64,
    /// In seconds; 0 is never.
    changed_at: AtomicU64,
    resources: AtomicU64,
    domains: AtomicU64,
    state: Mutex<String>,
}

const SERIES: [Series; 6] = [
    Series::gauge(
        "weir_xds_connected",
        "1 while there is a connection to the control plane that sends Envoy's domains.",
    ),
    Series::counter("weir_xds_acks_total", "Sets of resources that were accepted."),
    Series::counter("weir_xds_nacks_total", "Refusals of sets of resources, also of one that is sent again."),
    Series::gauge(
        "weir_xds_last_change_timestamp_seconds",
        "When another set of resources came, in seconds since 1970; 0 is never.",
    ),
    Series::gauge("weir_xds_resources", "Resources in the last set."),
    Series::gauge("weir_xds_domains", "Domains that are served of those that the control plane sends."),
];

impl XdsMetrics {
    /// Returns their collector.
    pub fn collector(&self) -> Result<impl Collector + 'static, prometheus::Error> {
        let counts = Arc::clone(&self.0);
        let read = move || {
            let number = |count: &AtomicU64| count.load(Relaxed) as f64;
            [
                f64::from(u8::from(counts.connected.load(Relaxed))),
                number(&counts.accepted),
                number(&counts.refused),
                number(&counts.changed_at),
                number(&counts.resources),
                number(&counts.domains),
            ]
        };
        sampled(SERIES, read)
    }

    /// Sets whether there is a connection, and says why.
    pub fn connected(&self, is_connected: bool, state: String) {
        self.0.connected.store(is_connected, Relaxed);
        *self.0.state.lock() = state;
    }

    /// The state of the client, for people.
    #[must_use]
    pub fn state(&self) -> String {
        self.0.state.lock().clone()
    }

    /// Counts an acceptance.
    pub fn accepted(&self) {
        self.0.accepted.fetch_add(1, Relaxed);
    }

    /// Counts a refusal.
    pub fn refused(&self) {
        self.0.refused.fetch_add(1, Relaxed);
    }

    /// Records another set.
    pub fn changed(&self, now: Micros, resources: usize, domains: usize) {
        self.0.changed_at.store(now.0 / 1_000_000, Relaxed);
        self.0.resources.store(resources as u64, Relaxed);
        self.0.domains.store(domains as u64, Relaxed);
    }
}
