//! The start of the features of the program.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use weir_config::Config;

use super::{AppError, Listeners};
use crate::feature::{BeforeCalls, FeatureList, FeatureWork, NodeBuilder, NodeShared, Storage};
use crate::feature_pages::FeaturePages;
use crate::server::{FeatureSocket, LiveSnapshot, StartedFeature};
use crate::service::Snapshot;
use crate::telemetry::Metrics;
use crate::tls::TlsPort;

/// The features that run, and what they do in the background.
#[derive(Default)]
pub(super) struct StartedFeatures {
    pub(super) features: Vec<StartedFeature>,
    pub(super) background: Vec<FeatureWork>,
    /// What they begin before the first call.
    pub(super) before_calls: Vec<(&'static str, BeforeCalls)>,
    /// What they show on the admin port.
    pub(super) pages: FeaturePages,
    /// Files that their connections to the store have open, beside those of the workers.
    pub(super) open_files: usize,
}

/// Starts the features that the configuration has on. Each gets the port of its section.
pub(super) fn start(
    features: FeatureList,
    (config, metrics, live, storage): (&Config, &Metrics, &LiveSnapshot, &Storage),
    shared: &NodeShared,
    listeners: &mut Listeners,
    tls: &HashMap<&'static str, Arc<TlsPort>>,
) -> Result<StartedFeatures, AppError> {
    let parts = live.current().features;
    let mut started = StartedFeatures::default();
    for feature in features {
        let name = feature.name();
        let mut node = NodeBuilder::new(config, metrics, (&parts, storage, shared));
        let running = feature.start(&mut node).map_err(|error| AppError::Feature { name, error })?;
        let Some(running) = running else { continue };
        let NodeBuilder { refused_connections: refused, background, followers, before_calls, .. } = node;
        started.background.extend(background);
        started.before_calls.extend(before_calls.into_iter().map(|begin| (name, begin)));
        started.pages.extend(node.pages);
        started.open_files += node.open_files;
        if let Some(guard) = running.guard() {
            live.replace(|before| Snapshot { guard: Some(guard), ..before.clone() });
        }
        for mut follow in followers {
            live.join(|snapshot| {
                follow(snapshot);
                ((), follow)
            });
        }
        let socket = listeners.features.iter().position(|(of, _)| *of == name);
        let (_, listener) = socket.map(|at| listeners.features.swap_remove(at)).unzip();
        let port = config.sections.iter().find(|section| section.name() == name);
        let max_connections =
            port.and_then(|section| section.port.as_ref()).map_or(0, |it| it.max_connections);
        let socket = listener.map(|listener| FeatureSocket { listener, max_connections, refused });
        started.features.push(StartedFeature { running, tls: tls.get(name).cloned(), socket });
    }
    Ok(started)
}

impl StartedFeatures {
    /// Begins what comes before the first call. What it returns lives as long as the node.
    pub(super) fn begin(
        before_calls: Vec<(&'static str, BeforeCalls)>,
    ) -> Result<Vec<Box<dyn Any>>, AppError> {
        let begun = before_calls
            .into_iter()
            .map(|(name, begin)| begin().map_err(|error| AppError::Feature { name, error }));
        begun.collect()
    }
}
