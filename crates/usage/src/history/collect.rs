//! Reads the workers' counters, and records the increments.

use std::sync::Arc;

use weir_node::limiter::InvalidField;
use weir_node::telemetry::{CountedTotal, Metrics};
use weir_units::Micros;

use super::consumers::{self, ConsumerWindows, ConsumersAsk};
use super::latency::LatencyHistory;
use super::query::{UsageAsk, UsagePlan, UsageSums};
use super::resolutions::History;
use super::series::SeriesTable;
use crate::consumers::{ConsumerSamplers, ConsumerSummary};

/// Longest step back of the clock that keeps the history. After a shorter step, counts belong to the last second before
/// it until the clock has caught up.
const LONGEST_STEP_BACK: Micros = Micros::from_secs(3600);

/// Counts of one node.
pub(super) struct Collector {
    metrics: Metrics,
    samplers: ConsumerSamplers,
    pub(super) series: SeriesTable,
    pub(super) history: History,
    pub(super) consumers: ConsumerWindows,
    pub(super) latency: LatencyHistory,
    /// Time at which the counters were last read. Later counts belong to this second.
    last: Micros,
    /// Part of the minute in which the consumers were last taken.
    last_part: u64,
}

impl Collector {
    pub(super) fn new(metrics: Metrics, samplers: ConsumerSamplers, now: Micros) -> Self {
        let series = SeriesTable::new(metrics.names());
        let history = History::new(second(now));
        let last_part = second(now) / consumers::PART;
        let (consumers, latency) = (ConsumerWindows::default(), LatencyHistory::new(metrics.latency()));
        Self { metrics, samplers, series, history, consumers, latency, last: now, last_part }
    }

    /// True if the clock stepped back too far to continue the history.
    pub(super) fn is_ahead_of(&self, now: Micros) -> bool {
        self.last.0.saturating_sub(now.0) > LONGEST_STEP_BACK.0
    }

    /// Clears the history. Counts since the last read are still added.
    pub(super) fn begin_anew(&mut self, now: Micros) {
        self.history = History::new(second(now));
        self.consumers = ConsumerWindows::default();
        self.latency.forget();
        (self.last, self.last_part) = (now, second(now) / consumers::PART);
    }

    /// Reads all counters. Called at the beginning of every second, and before a question is answered.
    pub(super) fn collect(&mut self, now: Micros) {
        let counted_in = second(self.last);
        // After the counts: names of all that was counted are known then.
        let (totals, units) = (sums(&self.metrics), self.metrics.used_costs());
        self.series.rename(self.metrics.names());
        for total in totals {
            if let Some(entry) = self.series.since_last(&total) {
                self.history.add(counted_in, entry);
            }
        }
        for (cost, units) in units {
            if let Some(entry) = self.series.units_since_last(cost, units) {
                self.history.add(counted_in, entry);
            }
        }
        self.latency.add(counted_in, self.metrics.latency());
        self.last = now;
        self.history.open_at(second(now));
        if second(now) / consumers::PART > self.last_part {
            self.collect_consumers(now);
        }
    }

    /// Takes the sketches' summaries.
    pub(super) fn collect_consumers(&mut self, now: Micros) {
        let found: ConsumerSummary = self.samplers.take();
        let found = consumers::named(found, |strategy| self.series.strategy(strategy));
        self.consumers.add(self.last_part * consumers::PART, found);
        self.last_part = self.last_part.max(second(now) / consumers::PART);
    }

    /// Returns the part of an answer that this node has.
    pub(super) fn sums(&self, ask: UsageAsk, now: Micros) -> Result<UsageSums, InvalidField> {
        let plan = UsagePlan::new(ask, now, |from| self.history.resolution(from))?;
        let (resolution, from, to) = (plan.resolution, plan.from, plan.to);
        let mut sums = UsageSums::new(plan);
        let level = self.history.level(resolution);
        level.slots(from / level.width, to.div_ceil(level.width), |slot, (id, calls, cost)| {
            if let Some(name) = self.series.name_at(usize::from(id)).filter(|_| !sums.is_too_large()) {
                sums.add(name, slot * level.width, calls, cost);
            }
        });
        Ok(sums)
    }

    /// Returns the summaries of consumers that this node has.
    pub(super) fn found(&self, ask: &ConsumersAsk, now: Micros) -> Vec<&ConsumerSummary<Arc<str>>> {
        self.consumers.window(ask.window, second(now))
    }
}

/// Counts of all workers so far, each series once.
fn sums(metrics: &Metrics) -> Vec<CountedTotal> {
    let mut all = Vec::new();
    metrics.totals(|one| all.push(one));
    let key = |one: &CountedTotal| (one.strategy, one.pattern, one.outcome as u8);
    all.sort_unstable_by_key(key);
    all.dedup_by(|later, first| {
        let is_same = key(later) == key(first);
        if is_same {
            first.calls = first.calls.wrapping_add(later.calls);
            first.cost = first.cost.wrapping_add(later.cost);
        }
        is_same
    });
    all
}

/// The second that contains a time.
pub(super) fn second(at: Micros) -> u64 {
    at.0 / 1_000_000
}
