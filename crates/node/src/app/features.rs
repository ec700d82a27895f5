//! The start of the features of the program.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use super::{AppError, BegunFeatures, Listeners};
use crate::feature::{BeforeCalls, FeatureList, FeatureWork, FollowConfig, NodeBuilder, NodeParts, SetPart};
use crate::feature_pages::FeaturePages;
use crate::reload::RunningConfig;
use crate::server::{FeatureSocket, LiveSnapshot, StartedFeature};
use crate::service::Snapshot;
use crate::tls::TlsPort;
use crate::watch::WatchedFiles;

#[derive(Default)]
pub(super) struct StartedFeatures {
    pub(super) features: Vec<StartedFeature>,
    pub(super) background: Vec<FeatureWork>,
    pub(super) before_calls: Vec<(&'static str, BeforeCalls)>,
    pub(super) pages: FeaturePages,
    pub(super) files: Vec<Box<dyn WatchedFiles>>,
    /// Callbacks with each later configuration of the files.
    pub(super) configs: Vec<FollowConfig>,
    /// Open files that they need at most.
    pub(super) open_files: usize,
}

/// Starts the features that the configuration has on. Each gets the port of its section.
pub(super) fn start(
    (features, mut begun): (FeatureList, BegunFeatures),
    parts: &NodeParts<'_>,
    (running, live): (&RunningConfig, &LiveSnapshot),
    listeners: &mut Listeners,
    tls: &HashMap<&'static str, Arc<TlsPort>>,
) -> Result<StartedFeatures, AppError> {
    let mut started = StartedFeatures::default();
    for feature in features {
        let name = feature.name();
        let mut node = NodeBuilder::new(parts, begun.take(name), set_part(running, name));
        let running = feature.start(&mut node).map_err(|error| AppError::of_feature(name, error))?;
        let Some(running) = running else { continue };
        let NodeBuilder { refused_connections: refused, background, followers, before_calls, .. } = node;
        started.background.extend(background);
        started.before_calls.extend(before_calls.into_iter().map(|begin| (name, begin)));
        started.pages.extend(node.pages);
        started.open_files += node.open_files;
        if let Some(guard) = running.guard() {
            live.replace(|before| Snapshot { guard: Some(guard), ..before.clone() });
        }
        started.files.extend(node.files);
        started.configs.extend(node.configs);
        for mut follow in followers {
            live.join(|snapshot| {
                follow(snapshot);
                ((), follow)
            });
        }
        let socket = listeners.features.iter().position(|(of, _)| *of == name);
        let (_, listener) = socket.map(|at| listeners.features.swap_remove(at)).unzip();
        let port = parts.config.sections.iter().find(|section| section.name() == name);
        let max_connections =
            port.and_then(|section| section.port.as_ref()).map_or(0, |it| it.max_connections);
        let socket = listener.map(|listener| FeatureSocket { listener, max_connections, refused });
        started.features.push(StartedFeature { name, running, tls: tls.get(name).cloned(), socket });
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
            .map(|(name, begin)| begin().map_err(|error| AppError::of_feature(name, error)));
        begun.collect()
    }
}

fn set_part(running: &RunningConfig, feature: &'static str) -> SetPart {
    let running = running.clone();
    Arc::new(move |part| running.set_part(feature, part))
}
