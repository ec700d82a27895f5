//! The start of the features of the program.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::Config;

use super::{AppError, Listeners};
use crate::card::CardSpec;
use crate::feature::{FeatureList, FeatureWork, NodeBuilder, Storage};
use crate::server::{FeatureSocket, LiveSnapshot, StartedFeature};
use crate::telemetry::Metrics;
use crate::tls::TlsPort;

/// The features that run, and what they do in the background.
pub(super) struct StartedFeatures {
    pub(super) features: Vec<StartedFeature>,
    pub(super) background: Vec<FeatureWork>,
    /// Cards of the features on the page `/ui`.
    pub(super) cards: Vec<&'static CardSpec>,
}

/// Starts the features that the configuration has on. Each gets the port of its section.
pub(super) fn start(
    features: FeatureList,
    (config, metrics, live, storage): (&Config, &Metrics, &LiveSnapshot, &Storage),
    listeners: &mut Listeners,
    tls: &HashMap<&'static str, Arc<TlsPort>>,
) -> Result<StartedFeatures, AppError> {
    let parts = live.current().features;
    let mut started = StartedFeatures { features: Vec::new(), background: Vec::new(), cards: Vec::new() };
    for feature in features {
        let (name, mut node) = (feature.name(), NodeBuilder::new(config, metrics, (&parts, storage)));
        let running = feature.start(&mut node).map_err(|error| AppError::Feature { name, error })?;
        let Some(running) = running else { continue };
        let NodeBuilder { refused_connections: refused, background, followers, cards, .. } = node;
        started.background.extend(background);
        started.cards.extend(cards);
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
