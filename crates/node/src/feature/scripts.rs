//! Needs of the scripts of features, and when they have them.

use weir_store::scripts::{ScriptSpec, Uses};

use super::{Feature, FeatureList};
use crate::service::Snapshot;

/// Scripts of a feature, with the configurations that need them.
pub type UsedScripts = (&'static ScriptSpec, IsUsed);

/// True if a snapshot needs the scripts.
pub type IsUsed = fn(&Snapshot) -> bool;

/// Returns what a snapshot needs of the store: the engines of its strategies and of the limits of features, and
/// the scripts of `features`.
pub(crate) fn uses(features: FeatureList, snapshot: &Snapshot) -> Uses {
    let engines: Uses = snapshot.rules.engines().collect();
    let engines = snapshot.features.limits().fold(engines, |uses, limits| uses.and(&limits.uses));
    let scripts = features.iter().flat_map(|feature| feature.scripts());
    scripts.fold(engines, |uses, (spec, is_used)| uses.with(spec, is_used(snapshot)))
}

/// Returns the capabilities that the services of `features` need: the service, and the name of the capability.
pub(crate) fn services(features: FeatureList) -> Vec<(&'static str, &'static str)> {
    let of_feature = |feature: &&'static dyn Feature| {
        let names = feature.scripts().iter().map(|(spec, _)| spec.name());
        let services = feature.services();
        names.flat_map(|name| services.iter().map(move |service| (service.name, name))).collect::<Vec<_>>()
    };
    features.iter().flat_map(of_feature).collect()
}
