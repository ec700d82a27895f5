//! Wiring of the control plane that sends Envoy's domains: its client, the next snapshots, and the wait for the first
//! configuration.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use weir_config::{Config, EnvoyConfig};
use weir_time::clock::Clock;

use super::background::BackgroundThread;
use super::envoy::engines_of;
use super::{AppError, Listeners, Timing};
use crate::limiter::envoy::Loaded;
use crate::ratelimit::WaitingPage;
use crate::reload::RunningConfig;
use crate::server::{Shutdown, ShutdownSignal};
use crate::telemetry::{EnvoyEvent, EnvoyMetrics, Metrics, XdsMetrics};
use crate::xds::{XdsClient, XdsSets, XdsTiming, XdsUpdate, XdsUpdates};

/// The client of a control plane, on a thread of its own.
pub struct XdsThread {
    updates: XdsUpdates,
    metrics: XdsMetrics,
    clock: Clock,
    sets: XdsSets,
    _thread: BackgroundThread,
}

/// What a service that waited has when it starts.
pub struct FirstConfig {
    /// The client that received the first configuration.
    pub xds: XdsThread,
    /// The sockets, of which only that of the metrics was open so far.
    pub listeners: Listeners,
}

impl XdsThread {
    /// Starts the client, if a control plane is configured.
    pub fn start(config: &EnvoyConfig, clock: &Clock) -> Result<Option<Self>, AppError> {
        let Some(xds) = &config.xds else { return Ok(None) };
        let (metrics, updates) = (XdsMetrics::default(), XdsUpdates::default());
        let timing = XdsTiming::from(clock.clone());
        let client = XdsClient::new(config, xds, timing, metrics.clone(), updates.clone());
        let sets = client.sets();
        let thread = BackgroundThread::start("weir-xds", client.run(), (async {}, Duration::ZERO))
            .map_err(AppError::Xds)?;
        Ok(Some(Self { updates, metrics, clock: clock.clone(), sets, _thread: thread }))
    }

    /// The sets that the control plane sends.
    pub(super) fn sets(&self) -> XdsSets {
        self.sets.clone()
    }

    /// Makes a snapshot of each set that comes, and shows the metrics.
    pub(super) fn serve(
        &self,
        shown: &Metrics,
        running: &RunningConfig,
        metrics: &EnvoyMetrics,
        overrides_in_request: bool,
    ) -> Result<(), AppError> {
        shown.show_xds(&self.metrics)?;
        let (running, metrics, clock) = (running.clone(), metrics.clone(), self.clock.clone());
        self.updates.serve(move |XdsUpdate { domains, refused, mistakes, unmatched }| {
            running.engines().set_rules(engines_of(&domains, overrides_in_request));
            metrics.refused(&refused);
            metrics.unmatched(unmatched);
            match mistakes.is_empty() {
                true => metrics.loaded(clock.now()),
                false => metrics.happened(EnvoyEvent::ConfigRefused),
            }
            running.set_envoy(Arc::new(Loaded::new(domains, &metrics)));
        });
        Ok(())
    }
}

impl FirstConfig {
    /// Waits for the first configuration, good or bad, if that is configured. Meanwhile only the metrics have a port.
    /// Returns nothing if there is nothing to wait for, and an end if `shutdown` comes first.
    pub fn wait(
        config: &Config,
        timing: &Timing,
        shutdown: &mut ShutdownSignal,
    ) -> Result<Result<Option<Self>, Shutdown>, AppError> {
        if !config.envoy.xds.as_ref().is_some_and(|xds| xds.wait_for_first) {
            return Ok(Ok(None));
        }
        let Some(xds) = XdsThread::start(&config.envoy, &timing.clock)? else { return Ok(Ok(None)) };
        let metrics = Listeners::bind_metrics(&config.server)?;
        let page = metrics.as_ref().map(|listener| xds.page(config, listener)).transpose()?;
        tracing::warn!("no port is open until the control plane has sent the first configuration");
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(AppError::Xds)?;
        let end = runtime.block_on(async {
            tokio::select! {
                () = xds.updates.first() => None,
                end = shutdown => Some(end),
            }
        });
        drop(page);
        match end {
            Some(end) => Ok(Err(end)),
            None => {
                let listeners = Listeners::bind_others(&config.server, metrics)?;
                Ok(Ok(Some(Self { xds, listeners })))
            }
        }
    }
}

impl XdsThread {
    fn page(&self, config: &Config, listener: &TcpListener) -> Result<WaitingPage, AppError> {
        let registry = Registry::new();
        self.metrics.register(&registry)?;
        let listener = listener.try_clone().map_err(AppError::Admin)?;
        let ports = config.server.ratelimit.as_ref();
        let path = ports.and_then(|ports| ports.metrics.as_ref()).map_or("/metrics", |(_, path)| path);
        let page = WaitingPage::start(listener, path, &config.server, registry, self.metrics.clone());
        page.map_err(AppError::Admin)
    }
}
