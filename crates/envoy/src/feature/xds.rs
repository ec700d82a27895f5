//! The control plane that sends Envoy's domains: its client, the next snapshots, and the wait for the first configuration.

use std::net::TcpListener;
use std::time::Duration;

use crate::settings::EnvoyConfig;
use prometheus::Registry;
use weir_config::Config;
use weir_node::app::start_background;
use weir_node::feature::{BegunFeature, FeatureWork, NodeBuilder, StartError};
use weir_node::owned_thread::OwnedThread;
use weir_time::clock::Clock;

use crate::limiter::Loaded;
use crate::metrics::{EnvoyEvent, EnvoyMetrics, XdsMetrics};
use crate::ratelimit::{RatelimitListeners, cannot_start, ports_of, serve_waiting};
use crate::xds::{XdsClient, XdsSets, XdsTiming, XdsUpdate, XdsUpdates};

/// The client of a control plane, on a thread of its own.
pub(super) struct XdsThread {
    updates: XdsUpdates,
    metrics: XdsMetrics,
    clock: Clock,
    sets: XdsSets,
    _thread: OwnedThread,
}

/// A client that runs before the ports of the node are open.
pub(super) struct BegunXds {
    xds: XdsThread,
    /// The socket of the metrics, which are served while the node waits.
    metrics: Option<TcpListener>,
    /// The page of a node that waits. It ends when this is dropped.
    page: Option<OwnedThread>,
}

impl XdsThread {
    /// Starts the client, if a control plane is configured.
    fn start(config: &EnvoyConfig, clock: &Clock) -> Result<Option<Self>, StartError> {
        let Some(xds) = &config.xds else { return Ok(None) };
        let (metrics, updates) = (XdsMetrics::default(), XdsUpdates::default());
        let timing = XdsTiming::from(clock.clone());
        let client = XdsClient::new(config, xds, timing, metrics.clone(), updates.clone());
        let sets = client.sets();
        let thread = start_background("weir-xds", client.run(), (async {}, Duration::ZERO))
            .map_err(|error| cannot_run(&error))?;
        Ok(Some(Self { updates, metrics, clock: clock.clone(), sets, _thread: thread }))
    }

    /// The sets that the control plane sends.
    pub(super) fn sets(&self) -> XdsSets {
        self.sets.clone()
    }

    /// Makes a snapshot of each set that comes, and shows the metrics.
    pub(super) fn serve(
        &self,
        node: &NodeBuilder<'_>,
        metrics: &EnvoyMetrics,
        overrides_in_request: bool,
    ) -> Result<(), StartError> {
        node.show(self.metrics.collector()?)?;
        let (set_part, metrics, clock) = (node.set_part.clone(), metrics.clone(), self.clock.clone());
        self.updates.serve(move |XdsUpdate { domains, refused, mistakes, unmatched }| {
            metrics.refused(&refused);
            metrics.unmatched(unmatched);
            match mistakes.is_empty() {
                true => metrics.loaded(clock.now()),
                false => metrics.happened(EnvoyEvent::ConfigRefused),
            }
            set_part(Loaded::new(domains, &metrics).part(overrides_in_request));
        });
        Ok(())
    }
}

impl BegunXds {
    /// Starts the client, if a control plane is configured. If the node waits for the first configuration, good or bad, only
    /// the metrics have a port until then.
    pub(super) fn begin(config: &Config, clock: &Clock) -> Result<Option<BegunFeature>, StartError> {
        let envoy = EnvoyConfig::from_config(config);
        let Some(xds) = XdsThread::start(&envoy, clock)? else { return Ok(None) };
        let mut begun = Self { xds, metrics: None, page: None };
        let waits = envoy.xds.as_ref().is_some_and(|xds| xds.wait_for_first);
        let ready = waits.then(|| begun.wait(config)).transpose()?;
        Ok(Some(BegunFeature { state: Box::new(begun), ready }))
    }

    fn wait(&mut self, config: &Config) -> Result<FeatureWork, StartError> {
        self.metrics = RatelimitListeners::bind_metrics(config)?;
        if let Some(listener) = &self.metrics {
            self.page = Some(self.xds.page(config, listener)?);
        }
        tracing::warn!(
            "waiting for the first configuration of the control plane; no port is open until then"
        );
        let updates = self.xds.updates.clone();
        Ok(Box::pin(async move { updates.first().await }))
    }

    /// Ends the page of a node that waits.
    pub(super) fn ready(self) -> (XdsThread, Option<TcpListener>) {
        drop(self.page);
        (self.xds, self.metrics)
    }
}

impl XdsThread {
    fn page(&self, config: &Config, listener: &TcpListener) -> Result<OwnedThread, StartError> {
        let registry = Registry::new();
        registry.register(Box::new(self.metrics.collector()?))?;
        let listener = listener.try_clone().map_err(cannot_start)?;
        let path = ports_of(config).and_then(|ports| ports.metrics.as_ref());
        let path = path.map_or("/metrics", |(_, path)| path);
        let page = serve_waiting(listener, path, &config.server, registry, self.metrics.clone());
        page.map_err(cannot_start)
    }
}

fn cannot_run(error: &std::io::Error) -> StartError {
    StartError::Complete(format!("the client of the control plane cannot start: {error}"))
}
