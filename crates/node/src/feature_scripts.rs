//! What the scripts of a feature need of the store. The list of features is the program's (`src/feature_scripts.rs`); nothing here knows one.

use weir_store::scripts::{ScriptSpec, Uses};

use crate::service::Snapshot;

/// The scripts of a feature.
#[derive(Debug)]
pub struct FeatureScripts {
    /// The full names of its gRPC services. They do not serve while no node of the store has its scripts.
    pub services: &'static [&'static str],
    /// Its scripts, each with the configurations that need them.
    pub scripts: &'static [(&'static ScriptSpec, IsUsed)],
}

/// True if a snapshot, under these settings, needs the scripts.
pub type IsUsed = fn(&Snapshot, FixedSettings) -> bool;

/// The scripts of a program's features.
pub type ScriptList = &'static [&'static FeatureScripts];

/// Settings that need a restart.
#[derive(Debug, Clone, Copy)]
pub struct FixedSettings {
    /// True if the usage of nodes is shared.
    pub shared_usage: bool,
    /// True if the store keeps time series of usage.
    pub time_series: bool,
    /// True if live control is on.
    pub control: bool,
}

impl From<&weir_config::Config> for FixedSettings {
    fn from(config: &weir_config::Config) -> Self {
        Self {
            shared_usage: config.usage.shared,
            time_series: config.usage.timeseries,
            control: config.server.control,
        }
    }
}

/// Returns what a snapshot needs of the store: the engines of its strategies, and the scripts of `features`.
pub(crate) fn uses(features: ScriptList, snapshot: &Snapshot, settings: FixedSettings) -> Uses {
    let engines: Uses = snapshot.rules.engines().collect();
    let scripts = features.iter().flat_map(|feature| feature.scripts);
    scripts.fold(engines, |uses, (spec, is_used)| uses.with(spec, is_used(snapshot, settings)))
}

/// Returns the capabilities that the services of `features` need: the service, and the name of the capability.
pub(crate) fn services(features: ScriptList) -> Vec<(&'static str, &'static str)> {
    let of_feature = |feature: &&'static FeatureScripts| {
        let names = feature.scripts.iter().map(|(spec, _)| spec.name());
        names.flat_map(|name| feature.services.iter().map(move |service| (*service, name)))
    };
    features.iter().flat_map(of_feature).collect()
}
