//! Wiring of Envoy's rate limit service: loads its files, and publishes the loaded rules.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use weir_config::{EnvoyConfig, EnvoySource, Look};
use weir_core::algorithm::EngineKind;
use weir_core::envoy::Domains;
use weir_store::redis::{EngineSet, EnginesInUse};
use weir_time::clock::Clock;

use super::AppError;
use crate::limiter::envoy::Loaded;
use crate::server::EnvoyParts;
use crate::service::{EnvoyAnswers, HeaderNames};
use crate::telemetry::{EnvoyEvent, EnvoyMetrics};
use crate::watch::WatchedFiles;

/// Receives the domains before they are served; `None` if there are no files.
type Share = dyn Fn(Option<&Domains>) + Send + Sync;

/// The workers' parts, and the source of files to watch, if there are any.
pub(super) fn open(
    config: &EnvoyConfig,
    metrics: EnvoyMetrics,
    engines: &EnginesInUse,
    share: &Share,
) -> Result<(EnvoyParts, Option<EnvoySource>), AppError> {
    let live = Arc::new(ArcSwapOption::empty());
    let source = match &config.config {
        None => {
            share(None);
            None
        }
        Some(folder) => {
            let (source, warnings) = EnvoySource::open(folder.clone(), config.merge_domains)?;
            let domains = source.current().load_full();
            engines.set_rules(engines_of(&domains, config.overrides_in_request));
            share(Some(&domains));
            load(domains, &live, &metrics, &warnings);
            Some(source)
        }
    };
    let answers = EnvoyAnswers {
        headers: config.headers.then(HeaderNames::default),
        dynamic_metadata: config.dynamic_metadata,
    };
    Ok((EnvoyParts { live, rules: config.into(), answers, metrics }, source))
}

/// Envoy's files, watched.
pub(super) struct WatchedRules {
    pub(super) source: EnvoySource,
    pub(super) parts: EnvoyParts,
    pub(super) engines: EnginesInUse,
    pub(super) share: Box<Share>,
}

impl WatchedFiles for WatchedRules {
    fn look(&mut self) {
        let EnvoyParts { live, metrics, rules, .. } = &self.parts;
        match self.source.look() {
            Look::Same => {}
            Look::Loaded { warnings } => {
                let domains = self.source.current().load_full();
                self.engines.set_rules(engines_of(&domains, rules.overrides_in_request));
                (self.share)(Some(&domains));
                load(domains, live, metrics, &warnings);
            }
            Look::Refused(errors) => {
                metrics.happened(EnvoyEvent::ConfigRefused);
                tracing::error!(%errors, "Envoy's files are refused: those that were read before go on");
            }
        }
    }
}

fn load(domains: Arc<Domains>, live: &ArcSwapOption<Loaded>, metrics: &EnvoyMetrics, warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("Envoy's files: {warning}");
    }
    tracing::info!(domains = domains.len(), rules = domains.rules().len(), "Envoy's files are read");
    live.store(Some(Arc::new(Loaded::new(domains, metrics))));
    metrics.loaded(Clock::System.now());
}

/// Engines of the rules. Overrides in requests are windows.
fn engines_of(domains: &Domains, overrides_in_request: bool) -> EngineSet {
    let limits = domains.rules().iter().filter_map(|rule| rule.limit.as_ref());
    let engines = limits.flat_map(|limit| limit.strategy().algorithms()).map(|limit| limit.engine().kind());
    engines.chain(overrides_in_request.then_some(EngineKind::Window)).collect()
}
