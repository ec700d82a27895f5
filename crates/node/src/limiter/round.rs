//! The pipeline: resolve → decide → fall back → record → answer, for one question or many.
//!
//! Questions that arrived together are decided in one round. They cost less when they are put to the store together,
//! and are timed and counted together.
//!
//! The steps of a round are inlined by force: the calls and copies between them took 3 % of a decision's instructions.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use weir_config::AccessRight;
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::{Resolved, Strategy};
use weir_store::{Answers, Decision, Store, StoreAnswer, StoreError, TOGETHER, Verdicts, no_verdict};
use weir_time::clock;

use super::advice::{AdviceBegun, AdviceWanted};
use super::answer::Answer;
use super::costed_slot::CostedSlot;
use super::decided::{LimiterError, LimitsDecision};
use super::log::LogFields;
use super::logged_costs;
use super::named::Named;
use super::same_outcomes::{SameOutcomes, TimedRows};
use super::short_circuit::ShortCircuit;
use super::waiting::{Begun, Waiting, WaitingStage};
use super::{Limiter, Question, bounds, costs, inline, near, record, strategy_name_of};
use crate::access::RoundRights;
use crate::settle::{self, Outcome};
use crate::telemetry::{CountedMethod, CountedOutcome as Counted, TotalsRow};

/// Decides questions in order. Counts when it is dropped; until then only errors and rejections are counted. Each
/// decision is timed as the whole round, because none is answered earlier.
pub struct Round<'a, S: Store> {
    limiter: &'a Limiter<S>,
    pub(super) started: Instant,
    decided: u64,
    pub(super) store_answers: u64,
    /// Consecutive decisions of one strategy with one outcome, not counted yet.
    run: SameOutcomes,
    /// Decisions by row, whose time is counted when the round ends.
    timed: TimedRows,
    /// Answers of the store; kept to reuse the memory.
    answers: Answers,
    /// True if its questions are out of time.
    pub(super) is_late: bool,
}

enum RoundSlot<'q, 'm> {
    /// Takes the store's next answer; with the row that counts it.
    Asked(TotalsRow, &'q Arc<Strategy>, &'q Question<'m>),
    /// Asked of limits with costs of their own.
    Costed(Box<CostedSlot<'q, 'm>>),
    /// Decided by an access list or a ban.
    ShortCircuited(TotalsRow, &'q Arc<Strategy>, &'q Question<'m>, ShortCircuit),
    Refused(LimiterError),
}

impl<S: Store> Limiter<S> {
    /// Begins a round.
    pub fn round(&self) -> Round<'_, S> {
        let (started, run, answers) = (clock::monotonic(), SameOutcomes::NONE, Answers::default());
        let timed = TimedRows::default();
        Round { limiter: self, started, decided: 0, store_answers: 0, run, timed, answers, is_late: false }
    }
}

impl<'a, S: Store> Round<'a, S> {
    pub(super) fn limiter(&self) -> &'a Limiter<S> {
        self.limiter
    }

    /// Deadline of the store for a caller with this deadline.
    #[inline]
    pub fn store_deadline(&self, deadline: Option<Instant>) -> Option<Instant> {
        self.limiter.store_deadline(deadline, self.started)
    }

    /// Decides several questions, and calls `each` with their results in order. More than [`TOGETHER`] at a time save
    /// nothing more.
    pub fn decide<'q, 'm: 'q>(
        &mut self,
        questions: impl Iterator<Item = &'q Question<'m>>,
        each: impl FnMut(Begun<'q, '_>),
    ) where
        'a: 'q,
    {
        if self.limiter.rules.has_shadows() {
            self.decide_with_shadows(questions, each);
        } else {
            self.decide_live(questions, each);
        }
    }

    #[inline(always)]
    pub(super) fn decide_live<'q, 'm: 'q>(
        &mut self,
        questions: impl Iterator<Item = &'q Question<'m>>,
        mut each: impl FnMut(Begun<'q, '_>),
    ) where
        'a: 'q,
    {
        let mut slots = SmallVec::<[RoundSlot<'q, 'm>; TOGETHER]>::new();
        let mut decisions = SmallVec::<[Decision<'q>; TOGETHER]>::new();
        let mut named = None;
        let mut rights = RoundRights::new(AccessRight::Decide);
        for question in questions {
            if let Err(error) = self.resolve(question, (&mut rights, &mut named), &mut slots, &mut decisions)
            {
                slots.push(RoundSlot::Refused(self.limiter.refused(error)));
            }
        }
        let mut answers = std::mem::take(&mut self.answers);
        answers.clear();
        // At once: growing step by step allocates four times for sixteen decisions. A single one needs no allocation.
        if decisions.len() > 1 {
            answers.each.reserve(decisions.len());
            answers.limits.reserve(decisions.len());
        }
        self.ask_store(&decisions, &mut answers);
        let mut asked = decisions.iter().zip(answers.each.drain(..));
        let mut limits = &answers.limits[..];
        let mut costed;
        // Drained in place: to move them out would copy all sixteen slots.
        for slot in slots.drain(..) {
            each(match slot {
                RoundSlot::Asked(row, strategy, question) => match asked.next() {
                    Some((decision, StoreAnswer::Later(later))) => {
                        Begun::Waiting(self.waiting(row, question, decision, later))
                    }
                    Some((decision, StoreAnswer::Ready(decided))) => {
                        let is_denied = decided.as_ref().is_ok_and(|verdict| !verdict.allowed);
                        let outcome = self.outcome(strategy, decided, &mut limits);
                        if is_denied && self.limiter.counts_denial(decision) {
                            self.limiter.count_denial(strategy, &decision.subject, &outcome);
                        }
                        if self.limiter.recorder.decision_log().is_some() {
                            self.limiter.log_decision(decision, (question.is_for_default(), None), &outcome);
                        }
                        let asked = LogFields::of_decision(decision);
                        let answer = self.record(row, strategy, &asked, outcome);
                        if question.headers {
                            self.advised(row, decision, answer)
                        } else {
                            Begun::Answered(answer)
                        }
                    }
                    None => {
                        let answer = self.failed(strategy, no_verdict());
                        Begun::Answered(answer.map(|outcome| Answer { strategy, outcome, advice: None }))
                    }
                },
                RoundSlot::Costed(slot) => {
                    costed = Verdicts::default();
                    self.decide_costed(&slot, &mut costed)
                }
                RoundSlot::ShortCircuited(row, strategy, question, outcome) => {
                    Begun::Answered(self.short_circuited(row, strategy, question, outcome))
                }
                RoundSlot::Refused(error) => Begun::Answered(Err(error)),
            });
        }
        drop(asked);
        self.answers = answers;
    }

    /// Resolves a question into a slot. Questions for the store are appended to `decisions`.
    #[inline(always)]
    fn resolve<'q, 'm: 'q>(
        &self,
        question: &'q Question<'m>,
        (rights, named): (&mut RoundRights<'q>, &mut Option<Named<'a, 'q>>),
        slots: &mut SmallVec<[RoundSlot<'q, 'm>; TOGETHER]>,
        decisions: &mut SmallVec<[Decision<'q>; TOGETHER]>,
    ) -> Result<(), LimiterError>
    where
        'a: 'q,
    {
        if !question.rights.is_all() {
            let strategy_of = |resource: &str| strategy_name_of(&self.limiter.rules, resource);
            rights.check(question.rights, question.named(), strategy_of)?;
        }
        bounds::check(question)?;
        let rules = &self.limiter.rules;
        // A reference to the rule of all consumers costs less than a copy of it, which nearly every question would have.
        let own;
        let resolved = match question.inline() {
            Some(limit) => {
                own = inline::resolve(rules, question, limit)?;
                &own
            }
            None => {
                let all = self.named(question, named)?;
                match rules.exception(all, question.resource, question.consumer) {
                    Some(exception) => {
                        own = exception;
                        &own
                    }
                    None => all,
                }
            }
        };
        let row = self.limiter.recorder.row(resolved);
        let Resolved { strategy, group, listing, .. } = *resolved;
        bounds::check_needed(question, strategy)?;
        if !question.is_plain() {
            costs::check_shaping(question, strategy)?;
        }
        if let Some(listing) = listing {
            let listed = ShortCircuit::Listed(listing.listed);
            slots.push(RoundSlot::ShortCircuited(row, strategy, question, listed));
            return Ok(());
        }
        if !strategy.bans().is_empty()
            && let Some(ban) = self.limiter.banned(strategy, question)
        {
            slots.push(RoundSlot::ShortCircuited(row, strategy, question, ShortCircuit::Banned(ban)));
            return Ok(());
        }
        let cost = match CostedSlot::cost_of((row, strategy, group), question)? {
            Ok(cost) => cost,
            Err(slot) => {
                slots.push(RoundSlot::Costed(slot));
                return Ok(());
            }
        };
        decisions.push(Decision {
            strategy,
            subject: question.subject(group),
            op: question.op(),
            costs: std::slice::from_ref(cost),
            part: question.part(),
            deadline: question.deadline.as_ref(),
            caller: question.caller,
        });
        slots.push(RoundSlot::Asked(row, strategy, question));
        Ok(())
    }

    /// The rule before lists and overrides; cached while names repeat.
    #[inline(always)]
    fn named<'n, 'q>(
        &self,
        question: &'q Question<'_>,
        named: &'n mut Option<Named<'a, 'q>>,
    ) -> Result<&'n Resolved<'a>, LimiterError> {
        let (resource, strategy) = (question.resource, question.strategy);
        if !named.as_ref().is_some_and(|named| named.is_of(resource, strategy)) {
            *named = None;
        }
        match named {
            Some(named) => Ok(&named.resolved),
            named => {
                let resolved = self.limiter.rules.resolve(resource, strategy).map_err(bounds::shortened)?;
                let resolved = super::of_rates(resolved)?;
                Ok(&named.insert(Named { resource, strategy, resolved }).resolved)
            }
        }
    }

    /// The answer to a question whose consumer is on a list or banned.
    fn short_circuited<'s>(
        &mut self,
        row: TotalsRow,
        strategy: &'s Arc<Strategy>,
        question: &Question<'_>,
        outcome: ShortCircuit,
    ) -> Result<Answer<'s, 'static>, LimiterError> {
        let outcome = Ok(match outcome {
            ShortCircuit::Listed(listed) => Outcome::Listed(listed),
            ShortCircuit::Banned(ban) => Outcome::Banned(ban),
        });
        if self.limiter.recorder.decision_log().is_some() {
            let costs = std::slice::from_ref(&question.cost);
            let decision = Decision {
                part: question.part(),
                ..Decision::new(strategy, question.subject(None), question.op(), costs)
            };
            let asked = logged_costs::asked(question);
            self.limiter.log_decision(&decision, (question.is_for_default(), asked.as_ref()), &outcome);
        }
        self.record(row, strategy, &LogFields::new(question, strategy).without_named_cost(), outcome)
    }

    /// Adds advice to the answer. If the store answers later, the answer is pending too.
    #[cold]
    fn advised<'s, 'l>(
        &self,
        row: TotalsRow,
        decision: &Decision<'_>,
        answer: Result<Answer<'s, 'l>, LimiterError>,
    ) -> Begun<'s, 'l> {
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Begun::Answered(Err(error)),
        };
        let wanted = AdviceWanted::new(decision);
        let later =
            match wanted.begin(&*self.limiter.store, (decision.strategy, answer.strategy), &answer.outcome) {
                AdviceBegun::Known(advice) => {
                    answer.advice = advice;
                    return Begun::Answered(Ok(answer));
                }
                AdviceBegun::Later(binding, later) => (binding, later),
            };
        let mut verdicts = Verdicts::default();
        if let Outcome::Decided(LimitsDecision { verdict, limits, .. }) = answer.outcome {
            verdicts.decisions.push(verdict);
            verdicts.limits.extend_from_slice(limits);
        }
        let stage = WaitingStage::Advice(later.0, later.1, Box::new(verdicts));
        let (strategy, advice) = (Arc::clone(decision.strategy), Some(Box::new(wanted)));
        let (cost, peek, asked, notes) = (0, true, self.started, None);
        Begun::Waiting(Waiting { row, peek, cost, strategy, asked, stage, notes, advice })
    }

    /// Turns the store's answer or error into an outcome. Splits the strategy's verdicts off the front of `limits`.
    #[inline(always)]
    fn outcome<'l>(
        &mut self,
        strategy: &Strategy,
        decided: Result<Verdict, StoreError>,
        limits: &mut &'l [LimitVerdict],
    ) -> Result<Outcome<LimitsDecision<'l>>, LimiterError> {
        match decided {
            Ok(verdict) => {
                self.store_answers += 1;
                let (own, others) = limits.split_at(strategy.limits().len().min(limits.len()));
                *limits = others;
                Ok(Outcome::Decided(LimitsDecision { verdict, limits: own, costs: None }))
            }
            Err(error) => self.failed(strategy, error),
        }
    }

    /// Counts the store's failure, and applies the failure policy.
    #[cold]
    pub(super) fn failed<'l>(
        &mut self,
        strategy: &Strategy,
        error: StoreError,
    ) -> Result<Outcome<LimitsDecision<'l>>, LimiterError> {
        let took = clock::monotonic().saturating_duration_since(self.started);
        self.limiter.recorder.store_called(took, Some(&error).filter(|error| !error.is_callers()));
        settle::settle(strategy, Err(error)).map_err(|error| LimiterError::of_store(strategy, error))
    }

    /// Records a decision: counts, sample of consumers, log.
    #[inline(always)]
    pub(super) fn record<'s, 'l>(
        &mut self,
        row: TotalsRow,
        strategy: &'s Strategy,
        asked: &LogFields<'_>,
        outcome: Result<Outcome<LimitsDecision<'l>>, LimiterError>,
    ) -> Result<Answer<'s, 'l>, LimiterError> {
        let (counted, cost) = record::counted(&outcome, asked.cost, asked.peek);
        self.count(row, counted, cost);
        record::denied(&self.limiter.recorder, row, strategy, &outcome);
        if self.limiter.recorder.samples() {
            self.limiter.recorder.sampled(row, counted, asked.consumer);
        }
        record::log(asked, None, counted, outcome.as_ref().err());
        if let (Some(marks), Ok(outcome), false) = (strategy.marks(), &outcome, asked.peek) {
            near::count(&self.limiter.recorder, (strategy, marks), asked.consumer, outcome);
        }
        outcome.map(|outcome| Answer { strategy, outcome, advice: None })
    }

    #[inline(always)]
    fn count(&mut self, row: TotalsRow, outcome: Counted, cost: u64) {
        self.decided += 1;
        if !self.run.is_of(row, outcome) {
            if self.decided > 1 {
                self.timed.end(self.run, &self.limiter.recorder);
            }
            self.run = SameOutcomes::new(row, outcome);
        }
        self.run.add(cost);
    }
}

impl<S: Store> Drop for Round<'_, S> {
    fn drop(&mut self) {
        if self.decided == 0 {
            return;
        }
        let took = clock::monotonic().saturating_duration_since(self.started);
        self.limiter.recorder.took(CountedMethod::ShouldAllow, took, self.decided, self.store_answers);
        self.timed.record(self.run, took, &self.limiter.recorder);
    }
}
