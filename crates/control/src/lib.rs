//! Live control: entries that change what the files of the configuration say, while the service runs; and bans.
//!
//! ```text
//!   service ── requests ──────────┐
//!                                 ├─ task ── mirror ── overlay ── OverlayTarget ── the next snapshot
//!   store, every 250 ms ── polls ─┘   │
//!                                   audit, cache file
//!
//!   decisions ── Guard ── bans ── due, in force ── task
//! ```

pub mod bans;
mod metrics;
pub mod model;
mod page;
mod service;
mod settings;
pub mod store;
pub mod task;
mod timestamp;

use std::any::Any;
use std::sync::Arc;

use weir_config::AccessRight::Control;
use weir_config::Config;
use weir_node::access::Rights;
use weir_node::feature::{
    Feature, FeatureServices, MethodSpec, NodeBuilder, NodeShared, RunningFeature, ServiceContext,
    ServiceSpec, SettingsSpec, StartError, UsedScripts,
};
use weir_node::feature_parts::{FeaturePart, FeatureParts};
use weir_node::guard::Guard;
use weir_node::service::Snapshot;
use weir_proto::v1::control_service_server;

use self::bans::BanGuard;
use self::service::MAX_CHANGE_BYTES;
use self::settings::{ControlSettings, SECTION};
use self::store::{CONTROL, ControlLink};
use self::task::{ControlHandle, ControlParts, ControlStart, PreparedControl};

/// The name of the feature.
const NAME: &str = "control";

/// The feature `control`.
#[derive(Debug)]
pub struct ControlFeature;

/// The feature's part of a snapshot: true if live control is on, which takes a restart to change.
struct IsOn(bool);

/// The scripts, with the configurations that need them.
static SCRIPTS: [UsedScripts; 1] = [(&CONTROL, |snapshot| is_on(&snapshot.features))];

/// Live control, once it runs.
struct RunningControl {
    control: ControlHandle,
    bans: Arc<BanGuard>,
}

impl Feature for ControlFeature {
    fn name(&self) -> &'static str {
        NAME
    }

    fn settings(&self) -> SettingsSpec {
        SettingsSpec { sections: &[SECTION] }
    }

    fn services(&self) -> &'static [ServiceSpec] {
        const SERVICE: ServiceSpec = ServiceSpec {
            methods: &[
                MethodSpec::new("/weir.v1.ControlService/PutOverride", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/PutAccess", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/PutStrategy", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/PutMany", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/FindChange", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/DeleteEntry", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/ListEntries", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/WatchEntries", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/ListChanges", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/ListBans", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/LiftBan", &[Control]),
                MethodSpec::new("/weir.v1.ControlService/Reload", &[Control]),
            ],
            streams: &[("/weir.v1.ControlService/WatchEntries", 8 << 10)],
            largest_message: MAX_CHANGE_BYTES,
            ..ServiceSpec::new(
                control_service_server::SERVICE_NAME,
                "ControlService is there with `server.control: true`",
            )
        };
        &[SERVICE]
    }

    fn scripts(&self) -> &'static [UsedScripts] {
        &SCRIPTS
    }

    fn prepare(
        &self,
        next: &Config,
        previous: Option<&FeaturePart>,
    ) -> Result<Option<FeaturePart>, Vec<String>> {
        let first = || FeaturePart::new(Arc::new(IsOn(next.server.control)));
        Ok(Some(previous.cloned().unwrap_or_else(first)))
    }

    fn start(&self, node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        if !is_on(node.parts) {
            return Ok(None);
        }
        let NodeShared { clock, audit, target, reloads, loads, refused, .. } = node.shared;
        let settings = node.config.section::<ControlSettings>(NAME);
        let bans = BanGuard::new(clock.clone());
        let counted = Arc::clone(&bans);
        node.show(metrics::collector(move || counted.counts())?)?;
        let link = node.storage.scripts.as_ref().map(ControlLink::open);
        node.open_files += usize::from(link.is_some());
        let parts = ControlParts {
            cache_file: settings.and_then(|settings| settings.cache_file.as_deref()),
            node: node.config.node_name(),
            audit: audit.clone(),
            target: Arc::clone(target),
            link,
            clock: clock.clone(),
            reloads: reloads.clone(),
            loads: loads.clone(),
            refused: refused.clone(),
            bans: Arc::clone(&bans),
        };
        let (prepared, control) = PreparedControl::new(parts).map_err(failed)?;
        let begin = move || prepared.begin().map(|thread| -> Box<dyn Any> { Box::new(thread) });
        node.before_calls.push(Box::new(move || begin().map_err(failed)));
        let paged = control.clone();
        let page = move |rights: Rights<'_>| page::collected(&paged, rights);
        node.pages.paths.push(("/ui/control", Arc::new(page)));
        Ok(Some(Arc::new(RunningControl { control, bans })))
    }
}

impl RunningFeature for RunningControl {
    fn services(&self, worker: &ServiceContext, _: &Snapshot) -> FeatureServices {
        if !worker.is_for_operators {
            return FeatureServices::default();
        }
        let add = service::routes(self.control.clone(), worker.audit.clone());
        let routes = vec![(control_service_server::SERVICE_NAME, add)];
        FeatureServices { routes, ..FeatureServices::default() }
    }

    fn guard(&self) -> Option<Arc<dyn Guard>> {
        let guard: Arc<dyn Guard> = self.bans.clone();
        Some(guard)
    }
}

/// True if live control runs.
fn is_on(parts: &FeatureParts) -> bool {
    parts.get::<IsOn>(NAME).is_some_and(|part| part.0)
}

fn failed(error: ControlStart) -> StartError {
    StartError::Other(error.to_string())
}
