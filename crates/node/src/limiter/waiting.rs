//! A pending question: the store answers later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_core::strategy::Strategy;
use weir_store::{LaterVerdicts, OwnedSubject, Store, StoreError, Verdicts, no_verdict};
use weir_time::clock;

use super::advice::AdviceWanted;
use super::answer::Answer;
use super::decided::{LimiterError, LimitsDecision};
use super::decision_log::PendingLogLine;
use super::live_waits::LiveWaits;
use super::log::OwnedLogFields;
use super::{Limiter, near, record};
use crate::settle::{self, Outcome};
use crate::telemetry::{CountedMethod, CountedOutcome, TotalsRow};

/// Result of a question's first step.
pub enum Begun<'a, 'l> {
    /// Answered at once.
    Answered(Result<Answer<'a, 'l>, LimiterError>),
    /// Pending in the store.
    Waiting(Waiting),
}

/// A pending question. Kept small: the enum that it is part of is moved by value. It owns its data, so it belongs to
/// one call only. If it is dropped before its first poll, the store is not asked; later, only its own answer is lost.
pub struct Waiting {
    pub(super) row: TotalsRow,
    pub(super) peek: bool,
    pub(super) cost: u64,
    pub(super) strategy: Arc<Strategy>,
    pub(super) asked: Instant,
    pub(super) stage: WaitingStage,
    /// Rarely used fields.
    pub(super) notes: Option<Box<WaitingNotes>>,
    /// Set if the answer needs advice.
    pub(super) advice: Option<Box<AdviceWanted>>,
}

/// Rarely used fields of a pending question.
#[derive(Default)]
pub(super) struct WaitingNotes {
    /// For the service's own log, if it takes such lines.
    pub(super) log: Option<OwnedLogFields>,
    pub(super) decision_log: Option<PendingLogLine>,
    /// The caller, if a limit has a `near_limit`, whose line names it, or if calls may be held.
    pub(super) subject: Option<OwnedSubject>,
    /// The consumer, if calls are sampled.
    pub(super) sampled: Option<Box<str>>,
    /// Subject whose denial is counted for bans.
    pub(super) banning: Option<OwnedSubject>,
    /// Set if its strategy has shadows.
    pub(super) live: Option<LiveWaits>,
}

pub(super) enum WaitingStage {
    Decision(LaterVerdicts),
    /// Decided and counted. Pending is the time of the next unit of the limit at this index.
    Advice(usize, LaterVerdicts, Box<Verdicts>),
}

impl<S: Store> Limiter<S> {
    /// Waits for the store's answer, once, and puts it into `verdicts`.
    pub async fn wait<'w>(
        &self,
        waiting: &'w mut Waiting,
        verdicts: &'w mut Verdicts,
    ) -> Result<Answer<'w, 'w>, LimiterError> {
        let Waiting { row, peek, cost, strategy, asked, stage, notes, advice: wanted } = waiting;
        let later = match stage {
            WaitingStage::Decision(later) => later,
            WaitingStage::Advice(binding, later, decided) => {
                std::mem::swap(verdicts, decided);
                let advice = Some(AdviceWanted::of_peek(*binding, &later.await));
                let (strategy, outcome) = settled(strategy, Ok(&*verdicts));
                return Ok(Answer { strategy, outcome: outcome?, advice });
            }
        };
        let fields = (*row, *peek, *cost, *asked);
        let (answered_by, outcome) = self.answered(later.await, verdicts, strategy, fields, notes)?;
        let advice = match wanted {
            // Rare: in a box, all others need no room for it.
            Some(wanted) => Box::pin(wanted.wait(&*self.store, (strategy, answered_by), &outcome)).await,
            None => None,
        };
        Ok(Answer { strategy: answered_by, outcome, advice })
    }

    /// Counts the store's answer, and returns the strategy that answered and the outcome. A function of its own, because a
    /// future has room for all that is borrowed before one of its awaits.
    fn answered<'w>(
        &self,
        result: Result<Verdicts, StoreError>,
        verdicts: &'w mut Verdicts,
        strategy: &'w Arc<Strategy>,
        (row, peek, cost, asked): (TotalsRow, bool, u64, Instant),
        notes: &mut Option<Box<WaitingNotes>>,
    ) -> Result<(&'w Arc<Strategy>, Outcome<LimitsDecision<'w>>), LimiterError> {
        let took = clock::monotonic().saturating_duration_since(asked);
        let error = result.as_ref().map_or_else(Some, |verdicts| verdicts.local.as_ref());
        self.recorder.store_called(took, error.filter(|error| !error.is_callers()));
        let decided = result.map(|answered| *verdicts = answered);
        if let Some(costs) = &verdicts.budget {
            let subject = notes.as_ref().and_then(|notes| notes.subject.as_ref()).map(OwnedSubject::subject);
            let is_local = verdicts.local.is_some();
            if let Some(subject) = subject.as_ref().filter(|_| !is_local) {
                self.recorder.saw_holds(strategy, subject, costs);
            }
            // What the node admits by itself where calls may be held is counted by its settlement.
            let is_settled = is_local && strategy.costed().is_some_and(|costed| costed.hold.is_some());
            if !peek && !is_settled {
                let consumer = subject.map_or("", |subject| subject.consumer);
                self.recorder.asked_costs(row, (&**strategy, consumer), costs);
            }
        }
        let (answered_by, outcome) = settled(strategy, decided.map(|()| &*verdicts));
        let (counted, charged) = record::counted(&outcome, cost, peek);
        self.recorder.decided(row, CountedMethod::ShouldAllow, counted, charged, took);
        record::denied(&self.recorder, row, strategy, &outcome);
        if let Some(notes) = notes {
            if let Some(consumer) = &notes.sampled {
                self.recorder.sampled(row, counted, consumer);
            }
            self.note(notes, strategy, (counted, took), &outcome);
        }
        let outcome = outcome?;
        if let (Some(marks), false) = (answered_by.marks(), peek) {
            let subject = notes.as_ref().and_then(|notes| notes.subject.as_ref());
            let consumer = subject.map_or("", |subject| subject.subject().consumer);
            near::count(&self.recorder, (answered_by, marks), consumer, &outcome);
        }
        Ok((answered_by, outcome))
    }
}

impl<S: Store> Limiter<S> {
    /// Writes the log lines of a pending decision, and tells its shadows.
    fn note(
        &self,
        notes: &mut WaitingNotes,
        strategy: &Strategy,
        (counted, took): (CountedOutcome, Duration),
        outcome: &Result<Outcome<LimitsDecision<'_>>, LimiterError>,
    ) {
        if let Some(fields) = &notes.log {
            record::log(&fields.of(strategy), Some(took), counted, outcome.as_ref().err());
        }
        if let Some(subject) = &notes.banning {
            self.count_denial(strategy, &subject.subject(), outcome);
        }
        if let Some(decision) = &notes.decision_log {
            self.log_waited(decision, outcome);
        }
        if let Some(live) = notes.live.take() {
            live.ended(self, outcome);
        }
    }
}

pub(super) fn decision(verdicts: &Verdicts) -> Result<LimitsDecision<'_>, StoreError> {
    let verdict = *verdicts.decisions.first().ok_or_else(no_verdict)?;
    Ok(LimitsDecision { verdict, limits: &verdicts.limits, costs: verdicts.budget.as_deref() })
}

/// The outcome, and the strategy whose limits it is about: the smaller one where the node decided by itself.
fn settled<'v>(
    strategy: &'v Arc<Strategy>,
    verdicts: Result<&'v Verdicts, StoreError>,
) -> (&'v Arc<Strategy>, Result<Outcome<LimitsDecision<'v>>, LimiterError>) {
    let local = verdicts.as_ref().ok().filter(|verdicts| verdicts.local.is_some());
    let local = local.and_then(|verdicts| Some((strategy.local()?.strategy(), decision(verdicts).ok()?)));
    if let Some((smaller, decision)) = local {
        return (smaller, Ok(Outcome::Local(decision)));
    }
    let outcome = settle::settle(strategy, verdicts.and_then(decision));
    (strategy, outcome.map_err(|error| LimiterError::of_store(strategy, error)))
}
