//! One worker's counters. No allocation, lock or label lookup.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use weir_core::algorithm::budget::BudgetVerdict;
use weir_core::key::Subject;
use weir_core::strategy::{Resolved, Strategy};
use weir_store::StoreError;

use super::costs::{CostCounts, CostedCall};
use super::decision_log::DecisionLog;
use super::denials::{DenialCounts, DenialSums};
use super::histogram::{Histogram, LatencyBucket, nanos};
use super::outcome::CountedOutcome;
use super::sample::SampleCountdown;
use super::strategy_latency::{StrategyLatency, StrategyTimeSums};
use super::totals::{Totals, TotalsLayout, TotalsRow};
use crate::label::labels;

/// One worker's counters under one configuration; [`super::Metrics`] sums them at scrape time.
#[derive(Debug)]
pub struct Recorder {
    pub(super) totals: Totals,
    /// Renewals and releases by strategy.
    leases: Box<[LeaseCounts]>,
    shadows: Box<[ShadowCounts]>,
    denials: DenialCounts,
    /// Times by strategy, in the order of the configuration.
    times: Box<[StrategyLatency]>,
    decision_log: Option<Arc<DecisionLog>>,
    worker: Arc<WorkerCounters>,
}

/// One worker's counters that have no names of the configuration. They outlast reloads.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    pub(super) sample: SampleCountdown,
    pub(super) costs: CostCounts,
    pub(super) latency: [Histogram; CountedMethod::ALL.len()],
    pub(super) rejections: [AtomicU64; Rejection::ALL.len()],
    pub(super) store_answers: AtomicU64,
    pub(super) store_errors: [AtomicU64; StoreError::KINDS.len()],
    pub(super) store_latency: Histogram,
}

#[derive(Debug, Default)]
pub(super) struct ShadowCounts {
    pub(super) outcomes: [AtomicU64; CountedOutcome::ALL.len()],
    /// Decisions that differ from the live call's.
    differences: AtomicU64,
}

/// Outcomes of renewals and of releases of one strategy's leases.
#[derive(Debug, Default)]
pub(super) struct LeaseCounts(pub(super) [[AtomicU64; CountedLease::ALL.len()]; 2]);

labels! {
    /// Method whose time is counted.
    pub enum CountedMethod {
        /// Decisions of `weir.v1`; each one of a batch or a stream counts.
        ShouldAllow = "ShouldAllow",
        /// Requests of Envoy.
        ShouldRateLimit = "ShouldRateLimit",
        /// Acquisitions of permits.
        Acquire = "Acquire",
        /// Renewals of leases.
        Renew = "Renew",
        /// Releases of leases.
        Release = "Release",
    }
}

labels! {
    /// Outcome of a lease's renewal or release.
    pub enum CountedLease {
        /// The lease was held.
        Held = "held",
        /// The lease had expired, or was released before.
        NotHeld = "not_held",
        /// The store failed.
        Error = "error",
    }
}

labels! {
    /// Reason for rejecting a question.
    pub enum Rejection {
        /// A field was out of bounds.
        Invalid = "invalid",
        /// The strategy or resource is not configured.
        Unknown = "unknown",
    }
}

impl Recorder {
    pub(super) fn new(
        layout: Arc<TotalsLayout>,
        worker: Arc<WorkerCounters>,
        decision_log: Option<Arc<DecisionLog>>,
    ) -> Self {
        Self {
            leases: layout.strategies.iter().map(|_| LeaseCounts::default()).collect(),
            shadows: layout.shadows.iter().map(|_| ShadowCounts::default()).collect(),
            denials: DenialCounts::new(&layout.denials),
            times: (0..layout.timed).map(|_| StrategyLatency::default()).collect(),
            totals: Totals::new(layout),
            decision_log,
            worker,
        }
    }

    /// Returns the worker's counters that outlast reloads.
    pub fn worker(&self) -> &Arc<WorkerCounters> {
        &self.worker
    }

    /// Renewals and releases of each strategy with leases, by the number of its name.
    pub(super) fn leases(&self) -> impl Iterator<Item = (u32, &LeaseCounts)> {
        let layout = self.totals.layout();
        let known = |&index: &usize| Some((*layout.strategies.get(index)?, self.leases.get(index)?));
        layout.leases.iter().filter_map(known)
    }

    /// Outcomes of each shadow, with the names of the live strategy and the shadow.
    pub(super) fn shadows(&self) -> impl Iterator<Item = (&[String; 2], &ShadowCounts)> {
        self.totals.layout().shadows.iter().zip(&self.shadows)
    }

    pub(crate) fn costs(&self) -> &CostCounts {
        &self.worker.costs
    }

    /// Counts a question in `row` under limits with costs of their own; no peek.
    pub(crate) fn asked_costs(
        &self,
        row: TotalsRow,
        (strategy, consumer): (&Strategy, &str),
        verdict: &BudgetVerdict,
    ) {
        if let Some(costed) = strategy.costed() {
            let place = self.totals.place_of(row);
            self.worker.costs.asked(&CostedCall { strategy, consumer, costed, place }, verdict);
        }
    }

    /// Remembers what an answer said of the holds of a caller's limits.
    pub(crate) fn saw_holds(&self, strategy: &Strategy, subject: &Subject<'_>, verdict: &BudgetVerdict) {
        self.worker.costs.saw_holds(strategy, subject, verdict);
    }

    /// Counts a settlement or a debit in `row`.
    pub(crate) fn used_costs(
        &self,
        row: TotalsRow,
        (strategy, consumer): (&Strategy, &str),
        verdict: &BudgetVerdict,
    ) {
        if let Some(costed) = strategy.costed() {
            let place = self.totals.place_of(row);
            self.worker.costs.used(&CostedCall { strategy, consumer, costed, place }, verdict);
        }
    }

    /// The decision log, if there is one.
    #[inline]
    pub fn decision_log(&self) -> Option<&DecisionLog> {
        self.decision_log.as_deref()
    }

    /// The row that counts decisions of this kind.
    #[inline]
    pub fn row(&self, resolved: &Resolved<'_>) -> TotalsRow {
        self.totals.row(resolved)
    }

    /// Counts a decision in `row`, and its time.
    pub fn decided(
        &self,
        row: TotalsRow,
        method: CountedMethod,
        outcome: CountedOutcome,
        cost: u64,
        took: Duration,
    ) {
        self.ended(row, outcome, 1, cost);
        self.worker.latency[method as usize].observe(took, 1);
        self.strategy_took(row, took, 1);
    }

    /// Counts the time of decisions in `row`, made together, under their strategy.
    #[inline]
    pub fn strategy_took(&self, row: TotalsRow, took: Duration, decisions: u64) {
        if let Some(times) = self.totals.index_of(row).and_then(|strategy| self.times.get(strategy)) {
            times.observe(took, decisions);
        }
    }

    pub(super) fn add_times(&self, sums: &mut StrategyTimeSums) {
        let numbers = &self.totals.layout().strategies;
        self.times.iter().zip(numbers).for_each(|(times, &number)| times.add_to(sums, number));
    }

    /// Counts decisions and their total cost in `row`. [`Recorder::took`] counts their time.
    #[inline]
    pub fn ended(&self, row: TotalsRow, outcome: CountedOutcome, calls: u64, cost: u64) {
        if calls > 0 {
            self.totals.count(row, outcome, calls, cost);
        }
    }

    /// Counts a denial in `row` by the limit with this index.
    #[inline]
    pub fn denied(&self, row: TotalsRow, limit: usize) {
        if let Some(strategy) = self.totals.index_of(row) {
            self.denials.count(&self.totals.layout().denials, strategy, limit);
        }
    }

    pub(super) fn add_denials(&self, sums: &mut DenialSums) {
        self.denials.add_to(&self.totals.layout().denials, sums);
    }

    /// True if this decision is sampled, so that its consumer is to be given to [`Recorder::sampled`].
    #[inline]
    pub fn samples(&self) -> bool {
        self.worker.sample.takes()
    }

    /// Gives a decision to the sample.
    pub fn sampled(&self, row: TotalsRow, outcome: CountedOutcome, consumer: &str) {
        if let Some(strategy) = self.totals.strategy_of(row) {
            self.worker.sample.add(strategy, outcome, consumer);
        }
    }

    /// Counts a decision of shadow number `shadow`. Returns true if it is to be logged: the first that differs, and
    /// every hundredth after it.
    pub fn shadow_decided(&self, shadow: usize, outcome: CountedOutcome, differs: bool) -> bool {
        const LOGGED: u64 = 100;
        let Some(counts) = self.shadows.get(shadow) else { return false };
        counts.outcomes[outcome as usize].fetch_add(1, Relaxed);
        differs && counts.differences.fetch_add(1, Relaxed).is_multiple_of(LOGGED)
    }

    /// Counts the time of decisions made together in `took`, with `store_answers` successful calls of the store.
    pub fn took(&self, method: CountedMethod, took: Duration, decisions: u64, store_answers: u64) {
        let worker = &*self.worker;
        let ns = nanos(took);
        let bucket = LatencyBucket::new(ns);
        worker.latency[method as usize].add(bucket, ns, decisions);
        worker.store_answers.fetch_add(store_answers, Relaxed);
        match store_answers {
            0 => {}
            // A division costs as much as all else here.
            1 => worker.store_latency.add(bucket, ns, 1),
            each => worker.store_latency.observe_ns(ns / each, each),
        }
    }

    /// Counts the renewal or the release of a lease under strategy number `strategy`.
    pub fn lease(&self, strategy: usize, method: CountedMethod, ended: CountedLease, took: Duration) {
        if let Some(counts) = self.leases.get(strategy) {
            let counts = &counts.0[usize::from(method == CountedMethod::Release)];
            counts[ended as usize].fetch_add(1, Relaxed);
        }
        self.worker.latency[method as usize].observe(took, 1);
    }

    /// Counts a rejected question.
    pub fn rejected(&self, reason: Rejection) {
        self.worker.rejected(reason);
    }

    /// Counts a call of the store.
    pub fn store_called(&self, took: Duration, error: Option<&StoreError>) {
        self.worker.store_called(took, error);
    }
}

impl WorkerCounters {
    /// Counts a rejected question.
    pub fn rejected(&self, reason: Rejection) {
        self.rejections[reason as usize].fetch_add(1, Relaxed);
    }

    /// Counts a call of the store.
    pub fn store_called(&self, took: Duration, error: Option<&StoreError>) {
        self.store_latency.observe(took, 1);
        let counter = match error {
            None => Some(&self.store_answers),
            Some(error) => {
                let kind = StoreError::KINDS.iter().position(|kind| *kind == error.kind());
                kind.and_then(|kind| self.store_errors.get(kind))
            }
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Relaxed);
        }
    }
}
