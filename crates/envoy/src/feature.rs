//! The feature: its services, its start, its service on each worker.

mod files;
mod overlay;
mod xds;

use std::sync::Arc;

use crate::settings::{ENVOY, EnvoyConfig, SECTION};
use weir_config::{AccessRight, Config};
use weir_node::feature::{
    BegunFeature, Feature, FeatureServices, HotRoute, MethodSpec, NodeBuilder, RunningFeature,
    ServiceContext, ServiceSpec, SettingsSpec, StartError,
};
use weir_node::owned_thread::OwnedThread;
use weir_node::readiness::FileKind;
use weir_node::service::Snapshot;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_server as envoy_service;
use weir_time::clock::Clock;

use self::overlay::OverlayInUse;
use self::xds::{BegunXds, XdsThread};
use crate::metrics::{EnvoyMetrics, show_reference};
use crate::ratelimit::{
    JsonParts, MAX_CONNECTIONS, PageParts, RatelimitListeners, ShownRules, cannot_start, ports_of,
    serve_pages,
};
use crate::service::{EnvoyParts, EnvoyService, MAX_RATE_LIMIT_BYTES};

/// The path of the only method.
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// The feature `envoy`.
#[derive(Debug)]
pub struct EnvoyFeature;

/// Envoy's service, once it runs.
pub struct RunningEnvoy {
    parts: EnvoyParts,
    _xds: Option<XdsThread>,
    _pages: Option<[OwnedThread; 2]>,
}

impl Feature for EnvoyFeature {
    fn name(&self) -> &'static str {
        ENVOY
    }

    fn services(&self) -> &'static [ServiceSpec] {
        const CALLS: ServiceSpec = ServiceSpec {
            methods: &[MethodSpec::new(SHOULD_RATE_LIMIT, &[AccessRight::Envoy])],
            ..ServiceSpec::new(envoy_service::SERVICE_NAME, "")
        };
        &[CALLS]
    }

    fn settings(&self) -> SettingsSpec {
        SettingsSpec { sections: &[SECTION] }
    }

    fn files(&self) -> &'static [FileKind] {
        &[files::KIND]
    }

    fn begin(&self, config: &Config, clock: &Clock) -> Result<Option<BegunFeature>, StartError> {
        BegunXds::begin(config, clock)
    }

    fn start(&self, node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        let config = &EnvoyConfig::from_config(node.config);
        let begun = node.begun.take().and_then(|begun| begun.downcast::<BegunXds>().ok());
        let (xds, metrics_port) = begun.map(|begun| begun.ready()).unzip();
        let ports = ports_of(node.config);
        let metrics = EnvoyMetrics::new(node.workers + usize::from(ports.is_some()));
        node.show(metrics.collector()?)?;
        if config.reference_metrics {
            show_reference(node, &metrics)?;
        }
        watch_files(node, config, &metrics, xds.as_ref())?;
        if let Some(xds) = &xds {
            xds.serve(node, &metrics, config.overrides_in_request)?;
        }
        // Workers have no use for the secrets of the control plane.
        let parts = EnvoyParts { config: EnvoyConfig { xds: None, ..config.clone() }, metrics };
        let pages = ports.map(|ports| {
            let listeners = RatelimitListeners::bind(node.config, ports, metrics_port.flatten())?;
            node.open_files += MAX_CONNECTIONS;
            let rules = ShownRules::default();
            let pages = PageParts {
                ports,
                server: &node.config.server,
                readiness: node.shared.readiness.clone(),
                metrics: node.metrics().clone(),
                rules: rules.clone(),
            };
            node.followers.push(Box::new(move |snapshot| {
                rules.follow(snapshot);
                true
            }));
            let json = JsonParts { start_worker: Arc::clone(&node.start_worker), envoy: parts.clone() };
            serve_pages(listeners, pages, json).map_err(cannot_start)
        });
        let pages = pages.transpose()?;
        Ok(Some(Arc::new(RunningEnvoy { parts, _xds: xds, _pages: pages })))
    }
}

/// Reads Envoy's files, if the configuration names any, and watches them under the overlay of the configuration.
fn watch_files(
    node: &mut NodeBuilder<'_>,
    config: &EnvoyConfig,
    metrics: &EnvoyMetrics,
    xds: Option<&XdsThread>,
) -> Result<(), StartError> {
    let EnvoyConfig { overrides_in_request, count_rejected, all_or_none, rules, .. } = config;
    let overlay = OverlayInUse::new(rules, xds.map(XdsThread::sets));
    if let Some(mut opened) = files::open(config, metrics)? {
        if let Some(loaded) = opened.loaded.take() {
            (node.set_part)(loaded.part(*overrides_in_request));
        }
        let set_part = Arc::clone(&node.set_part);
        node.files.push(Box::new(opened.watched(set_part, overlay.clone(), *overrides_in_request)));
    }
    // What is charged of denied hits takes a restart.
    let (count_rejected, all_or_none) = (*count_rejected, all_or_none.clone());
    node.configs.push(Box::new(move |next| {
        let rules = EnvoyConfig::from_config(next).rules;
        overlay.set(rules.counting_rejected(count_rejected).all_or_none(all_or_none.clone()));
    }));
    Ok(())
}

impl RunningEnvoy {
    /// Creates the service alone, without files, control plane and pages.
    #[must_use]
    pub fn new(parts: EnvoyParts) -> Self {
        Self { parts, _xds: None, _pages: None }
    }
}

impl RunningFeature for RunningEnvoy {
    fn services(&self, worker: &ServiceContext, snapshot: &Snapshot) -> FeatureServices {
        if !worker.serves_calls {
            return FeatureServices::default();
        }
        let (envoy, follow) = self.parts.worker(worker, snapshot);
        let on_router = Arc::clone(&envoy);
        FeatureServices {
            routes: vec![(
                envoy_service::SERVICE_NAME,
                Box::new(move |routes| routes.add_service(EnvoyService::server(&on_router))),
            )],
            hot: vec![HotRoute {
                path: SHOULD_RATE_LIMIT,
                largest_message: MAX_RATE_LIMIT_BYTES,
                begin: Arc::new(move |call| envoy.should_rate_limit(call)),
            }],
            follow: Some(follow),
        }
    }
}
