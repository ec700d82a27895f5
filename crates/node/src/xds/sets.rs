//! The sets that the control plane has sent, as domains under the overlay. Another overlay is laid on the last set at
//! once: the control plane does not send it again.

use std::sync::Arc;

use parking_lot::Mutex;
use prost_types::Any;
use weir_config::{EnvoyOverlay, GoodDomains, RefusedDomain};
use weir_time::clock::Clock;

use super::{XdsUpdate, XdsUpdates, resources};
use crate::telemetry::XdsMetrics;

/// The sets. Clones share them.
#[derive(Debug, Clone)]
pub struct XdsSets(Arc<Mutex<ReadSets>>);

#[derive(Debug)]
struct ReadSets {
    merge_domains: bool,
    overlay: EnvoyOverlay,
    /// How often the overlay has changed.
    overlays: u64,
    good: GoodDomains,
    /// The last set, as it was received.
    last: Option<(String, Vec<Any>)>,
    clock: Clock,
    metrics: XdsMetrics,
    updates: XdsUpdates,
}

impl XdsSets {
    pub(super) fn new(
        (merge_domains, overlay): (bool, EnvoyOverlay),
        clock: Clock,
        metrics: XdsMetrics,
        updates: XdsUpdates,
    ) -> Self {
        let good = GoodDomains::default();
        let sets =
            ReadSets { merge_domains, overlay, overlays: 0, good, last: None, clock, metrics, updates };
        Self(Arc::new(Mutex::new(sets)))
    }

    /// How often the overlay has changed: under another one, the same set is to be read again.
    pub(super) fn overlays(&self) -> u64 {
        self.0.lock().overlays
    }

    /// Serves what is good of a set. Returns every mistake in it.
    pub(super) fn take(&self, version: &str, resources: Vec<Any>) -> Vec<String> {
        let mut sets = self.0.lock();
        sets.last = Some((version.to_owned(), resources));
        sets.read()
    }

    /// Lays another overlay on the last set, and serves what is good of it.
    pub fn set_overlay(&self, overlay: EnvoyOverlay) {
        let mut sets = self.0.lock();
        sets.overlay = overlay;
        sets.overlays += 1;
        if sets.last.is_some() {
            sets.read();
        }
    }
}

impl ReadSets {
    fn read(&mut self) -> Vec<String> {
        let Some((version, resources)) = &self.last else { return Vec::new() };
        let read = resources::read(resources, self.merge_domains, &self.overlay, &self.good);
        for line in &read.unmatched {
            tracing::warn!("{line}");
        }
        let unmatched = read.unmatched.len();
        let (domains, refused) = self.good.take(read.set);
        let count = resources.len();
        self.metrics.changed(self.clock.now(), count, domains.len());
        let (served, rules) = (domains.len(), domains.rules().len());
        tracing::info!(
            version,
            resources = count,
            domains = served,
            rules,
            "the limits of the control plane are read"
        );
        log_mistakes(version, &read.mistakes, &refused);
        let mistakes = read.mistakes;
        let update = XdsUpdate { domains: Arc::new(domains), refused, mistakes: mistakes.clone(), unmatched };
        self.updates.push(update);
        mistakes
    }
}

fn log_mistakes(version: &str, mistakes: &[String], refused: &[RefusedDomain]) {
    for mistake in mistakes {
        tracing::error!(version, "limits of the control plane are refused: {mistake}");
    }
    for RefusedDomain { name, goes_on } in refused {
        match goes_on {
            true => tracing::error!(domain = name, "refused: its last good version goes on"),
            false => tracing::error!(domain = name, "refused: it has no good version, so requests fail"),
        }
    }
}
