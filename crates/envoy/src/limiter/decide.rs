//! Asks the store about all descriptors of a request at once, and applies the failure policy.

use std::slice;
use std::time::Instant;

use crate::rules::RateLimit;
use futures_util::future::join_all;
use smallvec::SmallVec;
use weir_core::key::Subject;
use weir_node::limiter::{LimiterError, log_decision};
use weir_node::settle::{self, Outcome};
use weir_store::{Answers, Decision, StoreAnswer, StoreError, no_verdict};
use weir_time::clock;

use super::order::{self, EqualDescriptors};
use super::{DescriptorDecision, DescriptorQuestion, EnvoyDecisions, EnvoyLimiter};
use crate::metrics::EnvoyEvent;

/// The outcome of each question; `None` where no limit applies.
pub(super) type Outcomes = SmallVec<[Option<Outcome<DescriptorDecision>>; 2]>;

impl EnvoyDecisions {
    /// One answer per question; `None` where no limit applies.
    pub(super) async fn decide_all(
        &self,
        envoy: &EnvoyLimiter,
        questions: &[DescriptorQuestion<'_>],
        (deadline, caller): (Option<Instant>, u32),
        started: Instant,
    ) -> Result<Outcomes, LimiterError> {
        if self.at_once {
            let answers = self.ask_at_once(questions, caller);
            return self.settle_at_once(envoy, questions, answers, started);
        }
        let deadline = self.store_deadline(deadline, started);
        let together =
            |places: EqualDescriptors| self.decide_together(envoy, questions, places, (deadline, caller));
        let all = || (0..questions.len()).collect();
        let counters = if questions.len() == 1 { None } else { order::runs(questions) };
        let mut decided = match counters {
            None => together(all()).await,
            Some(counters) => {
                let in_order = async |runs: Vec<EqualDescriptors>| {
                    let mut decided = Vec::new();
                    for run in runs {
                        decided.extend(together(run).await);
                    }
                    decided
                };
                join_all(counters.into_iter().map(in_order)).await.into_iter().flatten().collect()
            }
        };
        decided.sort_unstable_by_key(|(place, _)| *place);
        decided.into_iter().map(|(_, decided)| decided).collect()
    }

    /// Asks the store about the questions at these places at once; returns each answer with its place.
    async fn decide_together(
        &self,
        envoy: &EnvoyLimiter,
        questions: &[DescriptorQuestion<'_>],
        places: EqualDescriptors,
        (deadline, caller): (Option<Instant>, u32),
    ) -> SmallVec<[(usize, Result<Option<Outcome<DescriptorDecision>>, LimiterError>); 2]> {
        let started = clock::monotonic();
        let mut answers = Answers::default();
        {
            let asked = places.iter().filter_map(|&place| {
                Some(Decision { deadline: deadline.as_ref(), caller, ..questions.get(place)?.decision()? })
            });
            self.store.decide(&asked.collect::<SmallVec<[_; 2]>>(), &mut answers);
        }
        let (mut each, mut limits) = (answers.each.into_iter(), answers.limits.into_iter());
        let mut decided = SmallVec::new();
        let mut later = Vec::new();
        for place in places {
            let limited = questions.get(place).and_then(|question| Some((question, question.found.limit()?)));
            let Some((question, limit)) = limited else {
                decided.push((place, Ok(None)));
                continue;
            };
            let answer = match each.next() {
                Some(StoreAnswer::Later(verdicts)) => {
                    later.push(async move { (place, question, limit, verdicts.await) });
                    continue;
                }
                Some(StoreAnswer::Ready(Ok(verdict))) => {
                    // A store that answers later has this answer from its cache, unless nodes count on their own.
                    let cached = limit.strategy().approximate().is_none();
                    let decided = limits.next().map(|limit| DescriptorDecision { verdict, limit, cached });
                    decided.ok_or_else(no_verdict)
                }
                Some(StoreAnswer::Ready(Err(error))) => Err(error),
                None => Err(no_verdict()),
            };
            self.count_call(started, answer.as_ref().err());
            let answer = self.settle(envoy, question, limit, (answer, false));
            decided.push((place, answer.map(Some)));
        }
        if later.is_empty() {
            return decided;
        }
        for (place, question, limit, verdicts) in join_all(later).await {
            let failure = verdicts.as_ref().map_or_else(Some, |verdicts| verdicts.local.as_ref());
            self.count_call(started, failure);
            let is_local = verdicts.as_ref().is_ok_and(|verdicts| verdicts.local.is_some());
            let answer = verdicts.and_then(|verdicts| {
                let (verdict, limits) = verdicts.get(0).ok_or_else(no_verdict)?;
                let limit = *limits.first().ok_or_else(no_verdict)?;
                Ok(DescriptorDecision { verdict: *verdict, limit, cached: false })
            });
            decided.push((place, self.settle(envoy, question, limit, (answer, is_local)).map(Some)));
        }
        decided
    }

    /// Turns the store's answer or error into an outcome, by the rule's failure policy. The answer may be the node's own.
    pub(super) fn settle(
        &self,
        envoy: &EnvoyLimiter,
        question: &DescriptorQuestion<'_>,
        limit: &RateLimit,
        (answer, is_local): (Result<DescriptorDecision, StoreError>, bool),
    ) -> Result<Outcome<DescriptorDecision>, LimiterError> {
        if answer.is_err() || is_local {
            envoy.recorder.happened(EnvoyEvent::StoreError);
        }
        let whose = || format!("rule `{}`", question.found.path()).into();
        let decided = settle::settle(limit.strategy(), answer)
            .map_err(|error| LimiterError::Store { whose: whose(), error });
        let decided = decided.map(|outcome| match outcome {
            Outcome::Decided(decision) if is_local => Outcome::Local(decision),
            outcome => outcome,
        });
        if self.recorder.decision_log().is_some()
            && let Some(decision) = question.decision()
        {
            let verdict = match &decided {
                Ok(Outcome::Decided(decided)) => Some((&decided.verdict, &decided.limit)),
                _ => None,
            };
            log_decision(&self.recorder, &decision, settle::count_as(&decided), verdict);
        }
        decided
    }

    pub(super) fn count_call(&self, started: Instant, error: Option<&StoreError>) {
        let took = clock::monotonic().saturating_duration_since(started);
        self.recorder.store_called(took, error);
    }
}

impl DescriptorQuestion<'_> {
    /// The decision for the store; `None` if no limit applies.
    #[inline]
    pub(super) fn decision(&self) -> Option<Decision<'_>> {
        let subject = Subject { resource: &self.name, ..Subject::default() };
        Some(Decision::new(self.found.limit()?.strategy(), subject, self.op, slice::from_ref(&self.charged)))
    }
}
