//! The start of the features of the program.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::Config;

use super::{AppError, Listeners};
use crate::feature::{FeatureList, NodeBuilder};
use crate::server::{FeatureSocket, StartedFeature};
use crate::telemetry::Metrics;
use crate::tls::TlsPort;

/// Starts the features that the configuration has on. Each gets the port of its section.
pub(super) fn start(
    features: FeatureList,
    (config, metrics): (&Config, &Metrics),
    listeners: &mut Listeners,
    tls: &HashMap<&'static str, Arc<TlsPort>>,
) -> Result<Vec<StartedFeature>, AppError> {
    let mut started = Vec::new();
    for feature in features {
        let (name, mut node) = (feature.name(), NodeBuilder::new(config, metrics));
        let running = feature.start(&mut node).map_err(|error| AppError::Feature { name, error })?;
        let Some(running) = running else { continue };
        let socket = listeners.features.iter().position(|(of, _)| *of == name);
        let (_, listener) = socket.map(|at| listeners.features.swap_remove(at)).unzip();
        let port = config.sections.iter().find(|section| section.name() == name);
        let max_connections =
            port.and_then(|section| section.port.as_ref()).map_or(0, |it| it.max_connections);
        let refused = node.refused_connections;
        let socket = listener.map(|listener| FeatureSocket { listener, max_connections, refused });
        started.push(StartedFeature { running, tls: tls.get(name).cloned(), socket });
    }
    Ok(started)
}
