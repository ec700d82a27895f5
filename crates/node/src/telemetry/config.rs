//! Metrics of the configuration: how its files were read, and what is in force.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, MetricFamily, MetricType};
use weir_config::ConfigFingerprint;
use weir_time::clock::Clock;

use super::families::{counter, family, labelled};
use super::sampled::gauge;

const LOADS: &str = "weir_config_loads_total";
const LOADS_HELP: &str = "How often the files of the configuration were read.";
const LAST: &str = "weir_config_last_success_timestamp_seconds";
const LAST_HELP: &str =
    "Time of the last reading of the configuration without a mistake, in seconds since 1970.";
const INFO: &str = "weir_config_info";
const INFO_HELP: &str = "The configuration in force, by its hash; always 1.";

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
    #[must_use]
    pub fn hash(&self) -> ConfigFingerprint {
        self.0.lock().hash
    }

    /// The time of the last reading without a mistake, in seconds since 1970.
    #[must_use]
    pub fn last_read(&self) -> u64 {
        self.0.lock().last_seconds
    }

    /// The version of live control in force; 0 if there is none.
    #[must_use]
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

    pub(super) fn collector(&self) -> Result<impl Collector + use<>, prometheus::Error> {
        let describe = |name: &str, help: &str, labels: &[&str]| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())
        };
        let descriptions = vec![
            describe(LOADS, LOADS_HELP, &["result"])?,
            describe(LAST, LAST_HELP, &[])?,
            describe(INFO, INFO_HELP, &["hash"])?,
        ];
        Ok(ConfigCollector { loads: self.clone(), descriptions })
    }
}

struct ConfigCollector {
    loads: ConfigLoads,
    descriptions: Vec<Desc>,
}

impl Collector for ConfigCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let state = self.loads.0.lock();
        let loads = [("ok", state.good), ("error", state.refused)];
        let loads = loads.map(|(result, count)| counter(&[("result", result)], count));
        let (mut info, mut one) = (labelled(&[("hash", &state.hash.to_string())]), Gauge::default());
        one.set_value(1.0);
        info.set_gauge(one);
        vec![
            family(LOADS, LOADS_HELP, MetricType::COUNTER, loads.into()),
            family(LAST, LAST_HELP, MetricType::GAUGE, vec![gauge(state.last_seconds as f64)]),
            family(INFO, INFO_HELP, MetricType::GAUGE, vec![info]),
        ]
    }
}
