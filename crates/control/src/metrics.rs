//! Metrics of bans. Denials by bans are decisions with the outcome `banned`.

use prometheus::core::Collector;
use weir_node::telemetry::sampled::{Series, sampled};

/// Numbers of bans of a node at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BanCounts {
    /// Bans that the node knows.
    pub active: usize,
    /// Callers whose denials are counted.
    pub counted: usize,
    /// Bans that the node has made.
    pub made: u64,
    /// Bans that were lifted through the node.
    pub lifted: u64,
}

const SERIES: [Series; 4] = [
    Series::gauge("weir_bans", "Bans in force that this node knows."),
    Series::gauge("weir_ban_counted_callers", "Callers whose denials are counted for bans."),
    Series::counter("weir_bans_made_total", "Bans that this node has made."),
    Series::counter("weir_bans_lifted_total", "Bans that were lifted through this node."),
];

/// Returns a collector of the counts that a function returns.
pub(crate) fn collector(
    counts: impl Fn() -> BanCounts + Send + Sync + 'static,
) -> Result<impl Collector, prometheus::Error> {
    sampled(SERIES, move || {
        let BanCounts { active, counted, made, lifted } = counts();
        [active as f64, counted as f64, made as f64, lifted as f64]
    })
}
