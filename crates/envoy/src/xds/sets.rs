//! The sets that the control plane has sent, as domains under the overlay. Another overlay is laid on the last set at
//! once: the control plane does not send it again.

use std::sync::Arc;

use crate::files::{GoodDomains, RefusedDomain};
use crate::overlay::EnvoyOverlay;
use crate::rules::{Domains, Rule};
use parking_lot::Mutex;
use prost_types::Any;
use tokio::sync::Notify;
use weir_time::clock::Clock;

use super::descriptors::MAX_MISTAKES;
use super::resources::SetRules;
use super::{XdsUpdate, XdsUpdates, resources};
use crate::metrics::XdsMetrics;

/// The sets. Clones share them.
#[derive(Debug, Clone)]
pub struct XdsSets {
    sets: Arc<Mutex<ReadSets>>,
    /// Notified when the overlay has changed.
    overlaid: Arc<Notify>,
}

#[derive(Debug)]
struct ReadSets {
    rules: SetRules,
    /// Number of changes of the overlay.
    overlays: u64,
    good: GoodDomains,
    /// The last set, as it was received.
    last: Option<(String, Vec<Any>)>,
    /// True if the last set had no mistake when it was read last.
    is_good: bool,
    clock: Clock,
    metrics: XdsMetrics,
    updates: XdsUpdates,
}

impl XdsSets {
    pub(super) fn new(rules: SetRules, clock: Clock, metrics: XdsMetrics, updates: XdsUpdates) -> Self {
        let good = GoodDomains::default();
        let sets = ReadSets { rules, overlays: 0, good, last: None, is_good: false, clock, metrics, updates };
        Self { sets: Arc::new(Mutex::new(sets)), overlaid: Arc::default() }
    }

    /// Number of changes of the overlay. Under another overlay, the same set is read again.
    pub(super) fn overlays(&self) -> u64 {
        self.sets.lock().overlays
    }

    /// Serves what is good of a set. Returns every mistake in it.
    pub(super) fn take(&self, version: &str, resources: Vec<Any>) -> Vec<String> {
        let mut sets = self.sets.lock();
        sets.last = Some((version.to_owned(), resources));
        sets.read()
    }

    /// Lays another overlay on the last set, and serves what is good of it.
    pub fn set_overlay(&self, overlay: EnvoyOverlay) {
        let mut sets = self.sets.lock();
        sets.rules.overlay = overlay;
        sets.overlays += 1;
        if sets.last.is_some() {
            sets.read();
        }
        self.overlaid.notify_one();
    }

    /// Resolves when the overlay has changed. Returns whether the last set is good under it.
    pub(super) async fn overlaid(&self) -> bool {
        self.overlaid.notified().await;
        self.sets.lock().is_good
    }
}

impl ReadSets {
    fn read(&mut self) -> Vec<String> {
        let Some((version, resources)) = &self.last else { return Vec::new() };
        let read = resources::read(resources, &self.rules, &self.good);
        for line in &read.unmatched {
            tracing::warn!("{line}");
        }
        let unmatched = read.unmatched.len();
        let (domains, refused) = self.good.take(read.set);
        warn_of_values(&domains);
        let count = resources.len();
        self.metrics.changed(self.clock.now(), count, domains.len());
        let (served, rules) = (domains.len(), domains.rules().len());
        tracing::info!(
            version,
            resources = count,
            domains = served,
            rules,
            "limits of the control plane applied"
        );
        log_mistakes(version, &read.mistakes, &refused);
        let mistakes = read.mistakes;
        self.is_good = mistakes.is_empty();
        let update = XdsUpdate { domains: Arc::new(domains), refused, mistakes: mistakes.clone(), unmatched };
        self.updates.push(update);
        mistakes
    }
}

/// Warns of rules that ask for metrics by values of requests, each in a line.
fn warn_of_values(domains: &Domains) {
    let asks =
        |rule: &&Arc<Rule>| rule.detailed_metric || rule.entries.iter().any(|entry| entry.value_to_metric);
    let mut asking = domains.rules().iter().filter(asks);
    for rule in asking.by_ref().take(MAX_MISTAKES) {
        tracing::warn!(rule = rule.path(), "detailed_metric has no effect: no metric has values of requests");
    }
    let more = asking.count();
    if more > 0 {
        tracing::warn!(rules = more, "more rules ask for metrics by values of requests");
    }
}

fn log_mistakes(version: &str, mistakes: &[String], refused: &[RefusedDomain]) {
    for mistake in mistakes {
        tracing::error!(version, "limits of the control plane are refused: {mistake}");
    }
    refused.iter().for_each(RefusedDomain::log);
}
