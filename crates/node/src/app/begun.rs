//! Work of features before the ports are open.

use std::any::Any;
use std::collections::HashMap;

use futures_util::future::join_all;
use weir_config::Config;
use weir_time::clock::Clock;

use super::AppError;
use crate::feature::{BegunFeature, FeatureList, FeatureWork};
use crate::server::{self, Shutdown, ShutdownSignal};

/// The features that began before the ports are open.
#[derive(Default)]
pub struct BegunFeatures {
    states: HashMap<&'static str, Box<dyn Any + Send>>,
    waits: Vec<FeatureWork>,
}

impl BegunFeatures {
    /// Begins the features that the configuration has on.
    pub fn new(features: FeatureList, config: &Config, clock: &Clock) -> Result<Self, AppError> {
        let mut begun = Self::default();
        for feature in features {
            let name = feature.name();
            let Some(BegunFeature { state, ready }) =
                feature.begin(config, clock).map_err(|error| AppError::of_feature(name, error))?
            else {
                continue;
            };
            begun.states.insert(name, state);
            begun.waits.extend(ready);
        }
        Ok(begun)
    }

    /// Waits until the ports may be opened. Returns the kind of the shutdown if that comes first.
    pub fn wait(&mut self, shutdown: &mut ShutdownSignal) -> Result<Option<Shutdown>, AppError> {
        let waits = std::mem::take(&mut self.waits);
        if waits.is_empty() {
            return Ok(None);
        }
        Ok(server::runtime()?.block_on(async {
            tokio::select! {
                _ = join_all(waits) => None,
                end = shutdown => Some(end),
            }
        }))
    }

    pub(super) fn take(&mut self, feature: &str) -> Option<Box<dyn Any + Send>> {
        self.states.remove(feature)
    }
}
