//! Wiring of Envoy's rate limit service: loads its files, and publishes the loaded rules.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use weir_config::{EnvoyConfig, EnvoyFolder, EnvoySource, Look, RefusedDomain};
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
            let folder = EnvoyFolder::new(folder, config.layout.clone());
            let (source, look) = EnvoySource::open(folder, config.merge_domains, config.isolate_domains)?;
            let overrides_in_request = config.overrides_in_request;
            Publish { source: &source, live: &live, metrics: &metrics, engines, share, overrides_in_request }
                .show(look);
            Some(source)
        }
    };
    let answers = EnvoyAnswers {
        headers: config.headers.then(|| HeaderNames {
            limit: config.limit_header.as_str().into(),
            remaining: config.remaining_header.as_str().into(),
            reset: config.reset_header.as_str().into(),
        }),
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
        let Self { source, parts: EnvoyParts { live, metrics, rules, .. }, engines, share } = self;
        let overrides_in_request = rules.overrides_in_request;
        let look = source.look();
        Publish { source, live, metrics, engines, share, overrides_in_request }.show(look);
    }
}

/// Where loaded domains go.
struct Publish<'p> {
    source: &'p EnvoySource,
    live: &'p ArcSwapOption<Loaded>,
    metrics: &'p EnvoyMetrics,
    engines: &'p EnginesInUse,
    share: &'p Share,
    overrides_in_request: bool,
}

impl Publish<'_> {
    /// Serves what a look has found, and says what it refuses.
    fn show(&self, look: Look) {
        match look {
            Look::Same => {}
            Look::Loaded { warnings } => {
                self.load(&warnings);
                self.metrics.refused(&[]);
                self.metrics.loaded(Clock::System.now());
            }
            Look::Partly { warnings, errors, refused } => {
                self.metrics.happened(EnvoyEvent::ConfigRefused);
                self.metrics.refused(&refused);
                tracing::error!(%errors, "Envoy's files have mistakes: their domains are refused, all others are served");
                for RefusedDomain { name, goes_on } in &refused {
                    match goes_on {
                        true => tracing::error!(domain = name, "refused: its last good version goes on"),
                        false => tracing::error!(
                            domain = name,
                            "refused: it has no good version, so requests fail"
                        ),
                    }
                }
                self.load(&warnings);
            }
            Look::Refused(errors) => {
                self.metrics.happened(EnvoyEvent::ConfigRefused);
                tracing::error!(%errors, "Envoy's files are refused: those that were read before go on");
            }
        }
    }

    fn load(&self, warnings: &[String]) {
        let domains = self.source.current().load_full();
        self.engines.set_rules(engines_of(&domains, self.overrides_in_request));
        (self.share)(Some(&domains));
        for warning in warnings {
            tracing::warn!("Envoy's files: {warning}");
        }
        tracing::info!(domains = domains.len(), rules = domains.rules().len(), "Envoy's files are read");
        self.live.store(Some(Arc::new(Loaded::new(domains, self.metrics))));
    }
}

/// Engines of the rules. Overrides in requests are windows.
fn engines_of(domains: &Domains, overrides_in_request: bool) -> EngineSet {
    let limits = domains.rules().iter().filter_map(|rule| rule.limit.as_ref());
    let engines = limits.flat_map(|limit| limit.strategy().algorithms()).map(|limit| limit.engine().kind());
    engines.chain(overrides_in_request.then_some(EngineKind::Window)).collect()
}
