//! Wiring of Envoy's rate limit service: loads its files, and gives the loaded rules to the next snapshot.

use std::sync::Arc;

use prometheus::Registry;
use weir_config::{Config, EnvoyConfig, EnvoyFolder, EnvoyOverlay, EnvoySource, Look, RefusedDomain};
use weir_core::algorithm::EngineKind;
use weir_core::envoy::Domains;
use weir_store::scripts::{Uses, UsesInForce};
use weir_time::clock::Clock;

use super::AppError;
use super::overlay::OverlayInUse;
use crate::feature::{self, FeatureList, FixedSettings};
use crate::feature_parts::FeatureParts;
use crate::limiter::envoy::Loaded;
use crate::readiness::FileKind;
use crate::reload::RunningConfig;
use crate::server::EnvoyParts;
use crate::service::{EnvoyAnswers, HeaderNames, Snapshot};
use crate::telemetry::{EnvoyEvent, EnvoyMetrics, Metrics};
use crate::watch::{ReloadReport, WatchedFiles};

/// Envoy's files at the start.
pub(super) struct OpenedRules {
    /// The workers' parts.
    pub(super) parts: EnvoyParts,
    /// The rules; `None` if there are no files.
    pub(super) loaded: Option<Arc<Loaded>>,
    /// The files to watch, with what their reader needs.
    source: Option<RulesReader>,
    /// Mistakes of domains that the start left out.
    mistakes: Vec<String>,
}

/// Reads Envoy's files, and says what it refuses.
struct RulesReader {
    source: EnvoySource,
    metrics: EnvoyMetrics,
    engines: UsesInForce,
    overrides_in_request: bool,
}

/// Reads the files, if the configuration names any.
pub(super) fn open(
    config: &EnvoyConfig,
    metrics: EnvoyMetrics,
    engines: &UsesInForce,
) -> Result<OpenedRules, AppError> {
    let (mut source, mut loaded, mut mistakes) = (None, None, Vec::new());
    if let Some(folder) = &config.config {
        let folder = EnvoyFolder::new(folder, config.layout.clone()).with_config(config);
        let (files, look) = EnvoySource::open(folder, config.merge_domains, config.isolate_domains)?;
        let (metrics, engines) = (metrics.clone(), engines.clone());
        let overrides_in_request = config.overrides_in_request;
        let reader = RulesReader { source: files, metrics, engines, overrides_in_request };
        (loaded, mistakes) = reader.take(look).unwrap_or_default();
        source = Some(reader);
    }
    let answers = EnvoyAnswers {
        headers: config.headers.then(|| HeaderNames {
            limit: config.limit_header.as_str().into(),
            remaining: config.remaining_header.as_str().into(),
            reset: config.reset_header.as_str().into(),
        }),
        standard_headers: config.standard_headers,
        dynamic_metadata: config.dynamic_metadata,
    };
    let parts = EnvoyParts { rules: config.into(), answers, metrics };
    Ok(OpenedRules { parts, loaded, source, mistakes })
}

impl OpenedRules {
    /// The files to watch, if there are any.
    pub(super) fn watched(
        &mut self,
        running: &RunningConfig,
        overlay: &OverlayInUse,
    ) -> Option<WatchedRules> {
        let reader = self.source.take()?;
        let applied = overlay.current();
        let first = Some(report(std::mem::take(&mut self.mistakes)));
        Some(WatchedRules { reader, running: running.clone(), overlay: overlay.clone(), applied, first })
    }
}

/// Envoy's files, watched.
pub(super) struct WatchedRules {
    reader: RulesReader,
    running: RunningConfig,
    overlay: OverlayInUse,
    /// The overlay under which they were read.
    applied: EnvoyOverlay,
    /// How they were read at the start, until the first look.
    first: Option<ReloadReport>,
}

impl WatchedRules {
    /// Serves what a look has found, if anything.
    fn apply(&self, look: Look) -> Option<ReloadReport> {
        let (loaded, mistakes) = self.reader.take(look)?;
        if let Some(loaded) = loaded {
            self.running.set_envoy(loaded);
        }
        Some(report(mistakes))
    }
}

impl WatchedRules {
    /// Takes over the overlay, if it has changed.
    fn has_new_overlay(&mut self) -> bool {
        let overlay = self.overlay.current();
        let is_new = overlay != self.applied;
        if is_new {
            self.reader.source.set_overlay(overlay.clone());
            self.applied = overlay;
        }
        is_new
    }
}

impl WatchedFiles for WatchedRules {
    fn kind(&self) -> FileKind {
        FileKind::Envoy
    }

    fn look(&mut self) -> Option<ReloadReport> {
        let look = match self.has_new_overlay() {
            true => self.reader.source.reload(),
            false => self.reader.source.look(),
        };
        let first = self.first.take();
        self.apply(look).or(first)
    }

    fn reload(&mut self) -> ReloadReport {
        self.has_new_overlay();
        let look = self.reader.source.reload();
        self.apply(look).unwrap_or(Ok(()))
    }
}

impl RulesReader {
    /// The rules that a look has found, if there are new ones, and every mistake; `None` if nothing has changed.
    fn take(&self, look: Look) -> Option<(Option<Arc<Loaded>>, Vec<String>)> {
        match look {
            Look::Same => None,
            Look::Loaded { warnings } => {
                let loaded = self.load(&warnings);
                self.metrics.refused(&[]);
                self.metrics.loaded(Clock::System.now());
                Some((Some(loaded), Vec::new()))
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
                Some((Some(self.load(&warnings)), lines(&errors)))
            }
            Look::Refused(errors) => {
                self.metrics.happened(EnvoyEvent::ConfigRefused);
                tracing::error!(%errors, "Envoy's files are refused: those that were read before go on");
                Some((None, lines(&errors)))
            }
        }
    }

    fn load(&self, warnings: &[String]) -> Arc<Loaded> {
        let domains = self.source.current().load_full();
        self.metrics.unmatched(self.source.unmatched());
        self.engines.set_rules(engines_of(&domains, self.overrides_in_request));
        for warning in warnings {
            tracing::warn!("Envoy's files: {warning}");
        }
        tracing::info!(domains = domains.len(), rules = domains.rules().len(), "Envoy's files are read");
        Arc::new(Loaded::new(domains, &self.metrics))
    }
}

fn report(mistakes: Vec<String>) -> ReloadReport {
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

fn lines(errors: &impl ToString) -> Vec<String> {
    errors.to_string().lines().map(str::to_owned).collect()
}

/// Returns what a configuration needs of its store, with Envoy's domains if it has any.
pub fn uses(
    config: &mut Config,
    domains: Option<Arc<Domains>>,
    features: FeatureList,
) -> Result<Uses, AppError> {
    let metrics = Metrics::register(&Registry::new(), &config.rules)?;
    let counted = metrics.envoy(1)?;
    let parts = feature::prepare(features, config, &FeatureParts::default()).map_err(AppError::refused_by)?;
    let settings = FixedSettings::from(&*config);
    let snapshot = Snapshot {
        features: parts,
        envoy: domains.map(|domains| Arc::new(Loaded::new(domains, &counted))),
        ..Snapshot::of(std::mem::take(&mut config.rules), &metrics)
    };
    let uses = feature::uses(features, &snapshot, settings);
    let of_envoy = snapshot.envoy.as_ref();
    let of_envoy = of_envoy.map(|loaded| engines_of(loaded.domains(), config.envoy.overrides_in_request));
    Ok(uses.and(&of_envoy.unwrap_or_default()).or_window())
}

/// Engines of the rules. Overrides in requests are windows.
pub(super) fn engines_of(domains: &Domains, overrides_in_request: bool) -> Uses {
    let limits = domains.rules().iter().filter_map(|rule| rule.limit.as_ref());
    let engines = limits.flat_map(|limit| limit.strategy().algorithms()).map(|limit| limit.engine().kind());
    engines.chain(overrides_in_request.then_some(EngineKind::Window)).collect()
}
