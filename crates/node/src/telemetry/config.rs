//! Metrics of the configuration: how its files were read, and what is in force.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::proto::Metric;
use weir_config::ConfigFingerprint;
use weir_time::clock::Clock;

use super::families::{FamilySpec, counter, gauge};

pub(super) const FAMILIES: [FamilySpec; 3] = [
    FamilySpec::counter(
        "weir_config_loads_total",
        "How often the files of the configuration were read.",
        &["result"],
    ),
    FamilySpec::gauge(
        "weir_config_last_success_timestamp_seconds",
        "Time of the last reading of the configuration without a mistake, in seconds since 1970.",
        &[],
    ),
    FamilySpec::gauge("weir_config_info", "The configuration in force, by its hash; always 1.", &["hash"]),
];

/// The readings of the configuration. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ConfigLoads(Arc<Mutex<ConfigState>>);

#[derive(Debug, Default)]
struct ConfigState {
    good: u64,
    refused: u64,
    last_seconds: u64,
    hash: ConfigFingerprint,
    /// The version of live control in force; 0 without.
    control: u64,
}

impl ConfigLoads {
    /// Counts a reading without a mistake.
    pub fn read(&self, hash: ConfigFingerprint) {
        let mut state = self.0.lock();
        state.good += 1;
        state.last_seconds = Clock::System.now().0 / 1_000_000;
        state.hash = hash;
    }

    /// The hash of the configuration in force.
    pub fn hash(&self) -> ConfigFingerprint {
        self.0.lock().hash
    }

    /// The time of the last reading without a mistake, in seconds since 1970.
    pub fn last_read(&self) -> u64 {
        self.0.lock().last_seconds
    }

    /// The version of live control in force; 0 if there is none.
    pub fn control(&self) -> u64 {
        self.0.lock().control
    }

    /// Sets the version of live control in force.
    pub fn set_control(&self, version: u64) {
        self.0.lock().control = version;
    }

    /// Counts a reading with mistakes.
    pub fn refused(&self) {
        self.0.lock().refused += 1;
    }

    pub(super) fn metrics(&self) -> [Vec<Metric>; FAMILIES.len()] {
        let state = self.0.lock();
        let loads = [("ok", state.good), ("error", state.refused)];
        [
            loads.map(|(result, count)| counter(&[("result", result)], count)).into(),
            vec![gauge(&[], state.last_seconds as f64)],
            vec![gauge(&[("hash", &state.hash.to_string())], 1.0)],
        ]
    }
}
