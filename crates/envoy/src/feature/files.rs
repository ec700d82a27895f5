//! Envoy's files: loads them, and gives the loaded rules to the next snapshot.

use std::sync::Arc;

use crate::files::{EnvoyFolder, EnvoySource, FilesPoll, RefusedDomain};
use crate::overlay::EnvoyOverlay;
use crate::settings::EnvoyConfig;
use weir_node::feature::{SetPart, StartError};
use weir_node::readiness::FileKind;
use weir_node::watch::{ReloadReport, WatchedFiles};
use weir_time::clock::Clock;

use super::overlay::OverlayInUse;
use crate::limiter::Loaded;
use crate::metrics::{EnvoyEvent, EnvoyMetrics};

/// The kind of the files.
pub(super) const KIND: FileKind =
    FileKind::new("envoy", "Envoy's files are refused, or some of their domains");

/// Envoy's files at the start.
pub(super) struct OpenedRules {
    /// The rules, if there are any.
    pub(super) loaded: Option<Loaded>,
    reader: RulesReader,
    /// Mistakes of domains that the start left out.
    mistakes: Vec<String>,
}

/// Reads Envoy's files, and says what it refuses.
struct RulesReader {
    source: EnvoySource,
    metrics: EnvoyMetrics,
}

/// Reads the files, if the configuration names any.
pub(super) fn open(config: &EnvoyConfig, metrics: &EnvoyMetrics) -> Result<Option<OpenedRules>, StartError> {
    let Some(folder) = &config.config else { return Ok(None) };
    let folder = EnvoyFolder::new(folder, config.layout.clone()).with_config(config);
    let opened = EnvoySource::open(folder, config.merge_domains, config.isolate_domains);
    let (source, polled) = opened.map_err(|errors| {
        StartError::Complete(format!("the files of Envoy's rate limits have mistakes:\n{errors}"))
    })?;
    let reader = RulesReader { source, metrics: metrics.clone() };
    let (loaded, mistakes) = reader.take(polled).unwrap_or_default();
    Ok(Some(OpenedRules { loaded, reader, mistakes }))
}

impl OpenedRules {
    /// The files to watch. What they say next is given to `set_part`.
    pub(super) fn watched(
        self,
        set_part: SetPart,
        overlay: OverlayInUse,
        overrides_in_request: bool,
    ) -> WatchedRules {
        let (applied, first) = (overlay.current(), Some(report(self.mistakes)));
        WatchedRules { reader: self.reader, set_part, overrides_in_request, overlay, applied, first }
    }
}

/// Envoy's files, watched.
pub(super) struct WatchedRules {
    reader: RulesReader,
    set_part: SetPart,
    overrides_in_request: bool,
    overlay: OverlayInUse,
    /// The overlay under which they were read.
    applied: EnvoyOverlay,
    /// Report of the read at the start, until the first poll.
    first: Option<ReloadReport>,
}

impl WatchedRules {
    /// Serves what a poll has found, if anything.
    fn apply(&self, polled: FilesPoll) -> Option<ReloadReport> {
        let (loaded, mistakes) = self.reader.take(polled)?;
        if let Some(loaded) = loaded {
            (self.set_part)(loaded.part(self.overrides_in_request));
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
        KIND
    }

    fn poll(&mut self) -> Option<ReloadReport> {
        let polled = match self.has_new_overlay() {
            true => self.reader.source.reload(),
            false => self.reader.source.poll(),
        };
        let first = self.first.take();
        self.apply(polled).or(first)
    }

    fn reload(&mut self) -> ReloadReport {
        self.has_new_overlay();
        let polled = self.reader.source.reload();
        self.apply(polled).unwrap_or(Ok(()))
    }
}

impl RulesReader {
    /// The rules that a poll has found, if there are new ones, and every mistake; `None` if nothing has changed.
    fn take(&self, polled: FilesPoll) -> Option<(Option<Loaded>, Vec<String>)> {
        match polled {
            FilesPoll::Same => None,
            FilesPoll::Loaded { warnings } => {
                let loaded = self.load(&warnings);
                self.metrics.refused(&[]);
                self.metrics.loaded(Clock::System.now());
                Some((Some(loaded), Vec::new()))
            }
            FilesPoll::Partly { warnings, errors, refused } => {
                self.metrics.happened(EnvoyEvent::ConfigRefused);
                self.metrics.refused(&refused);
                tracing::error!(
                    %errors,
                    "Envoy's files have mistakes; their domains are rejected, all others are served"
                );
                refused.iter().for_each(RefusedDomain::log);
                Some((Some(self.load(&warnings)), lines(&errors)))
            }
            FilesPoll::Refused(errors) => {
                self.metrics.happened(EnvoyEvent::ConfigRefused);
                tracing::error!(%errors, "Envoy's files rejected; keeping the previous ones");
                Some((None, lines(&errors)))
            }
        }
    }

    fn load(&self, warnings: &[String]) -> Loaded {
        let domains = self.source.current().load_full();
        self.metrics.unmatched(self.source.unmatched());
        for warning in warnings {
            tracing::warn!("Envoy's files: {warning}");
        }
        tracing::info!(domains = domains.len(), rules = domains.rules().len(), "Envoy's files reloaded");
        Loaded::new(Arc::clone(&domains), &self.metrics)
    }
}

fn report(mistakes: Vec<String>) -> ReloadReport {
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

fn lines(errors: &impl ToString) -> Vec<String> {
    errors.to_string().lines().map(str::to_owned).collect()
}
