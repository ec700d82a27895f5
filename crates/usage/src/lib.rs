//! Usage: totals of decisions by time, the consumers that call most, and the nodes of a deployment.
//!
//! ```text
//!   service ── UsageService ──┐                    ┌── consumers: the sample of each worker
//!   page ── the page /ui ─────┴── ask ── history ──┴── store: what nodes on one Redis show one another
//! ```
//!
//! `settings` reads the section of the file. No decision waits for anything here: a thread reads counters that the node has
//! anyway, and answers questions.

mod consumers;
mod history;
mod page;
mod service;
mod settings;
mod store;

use std::any::Any;
use std::sync::Arc;

use weir_config::AccessRight::Usage;
use weir_config::Config;
use weir_node::feature::{
    Feature, FeatureServices, MethodSpec, NodeBuilder, RunningFeature, ServiceContext, ServiceSpec,
    SettingsSpec, StartError, UsedScripts,
};
use weir_node::feature_parts::{FeaturePart, FeatureParts};
use weir_node::service::Snapshot;
use weir_proto::v1::usage_service_server;

pub use self::consumers::ConsumerSamplers;
use self::history::{OwnNode, UsageHandle, UsageThread};
use self::page::UsagePage;
use self::settings::SECTION;
pub use self::settings::{UsageConfig, with_usage};
use self::store::{TIME_SERIES, USAGE};

/// The name of the feature.
const NAME: &str = "usage";

/// The feature `usage`.
#[derive(Debug)]
pub struct UsageFeature;

/// Parts of the store that a node uses, with the configurations that need them.
static SCRIPTS: [UsedScripts; 2] = [
    (&USAGE, |snapshot| part_of(&snapshot.features).is_some_and(|part| part.shared)),
    (&TIME_SERIES, |snapshot| part_of(&snapshot.features).is_some_and(|part| part.timeseries)),
];

/// The part of a snapshot.
#[derive(Clone, Copy)]
struct UsagePart {
    sample: u32,
    /// True if nodes share usage through Redis. A change of this or of `timeseries` takes a restart.
    shared: bool,
    timeseries: bool,
}

/// Usage, once it runs.
struct RunningUsage {
    /// Access for `UsageService`; `None` turns the service off.
    served: Option<UsageHandle>,
}

impl Feature for UsageFeature {
    fn name(&self) -> &'static str {
        NAME
    }

    fn settings(&self) -> SettingsSpec {
        SettingsSpec { sections: &[SECTION] }
    }

    fn services(&self) -> &'static [ServiceSpec] {
        const SERVICE: ServiceSpec = ServiceSpec {
            methods: &[
                MethodSpec::new("/weir.v1.UsageService/GetUsage", &[Usage]),
                MethodSpec::new("/weir.v1.UsageService/TopConsumers", &[Usage]),
                MethodSpec::new("/weir.v1.UsageService/ListNodes", &[Usage]),
            ],
            ..ServiceSpec::new(
                usage_service_server::SERVICE_NAME,
                "UsageService is there with `usage.service: true`",
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
        let UsageConfig { sample, shared, timeseries, .. } = UsageConfig::from_config(next);
        let part = match previous.and_then(FeaturePart::get::<UsagePart>) {
            Some(before) => UsagePart { sample, ..*before },
            None => UsagePart { sample, shared, timeseries },
        };
        Ok(Some(FeaturePart::new(Arc::new(part))))
    }

    fn start(&self, node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        let (config, shared, metrics) =
            (UsageConfig::from_config(node.config), node.shared, node.metrics().clone());
        let own = OwnNode {
            name: node.config.node_name(),
            address: shared.address.clone(),
            readiness: shared.readiness.clone(),
            loads: shared.loads.clone(),
        };
        let scripts = node.storage.scripts.as_ref();
        let started = UsageThread::start(&config, metrics.clone(), shared.clock.clone(), scripts, own);
        let thread = started.map_err(|error| {
            StartError::Other(format!("the thread that keeps the history of decisions cannot start: {error}"))
        })?;
        let (handle, samplers) = (thread.handle(), thread.samplers());
        node.followers.push(Box::new(move |snapshot| {
            if let Some(part) = part_of(&snapshot.features) {
                samplers.set_rate(&metrics, part.sample);
            }
            true
        }));
        node.pages.modules.push(&page::MODULE);
        node.pages.sources.push(Arc::new(UsagePage::new(handle.clone())));
        // Its last read comes after the last answer.
        node.before_calls.push(Box::new(move || Ok(Box::new(thread) as Box<dyn Any>)));
        Ok(Some(Arc::new(RunningUsage { served: config.service.then_some(handle) })))
    }
}

impl RunningFeature for RunningUsage {
    fn services(&self, worker: &ServiceContext, _: &Snapshot) -> FeatureServices {
        let routes = self.served.iter().flat_map(|usage| service::routes(usage, worker)).collect();
        FeatureServices { routes, ..FeatureServices::default() }
    }
}

fn part_of(parts: &FeatureParts) -> Option<Arc<UsagePart>> {
    parts.get(NAME)
}
