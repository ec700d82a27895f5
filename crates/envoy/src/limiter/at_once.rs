//! Requests to a store that answers at once. A future would be a kilobyte that is moved from step to step, so there is none.

use std::slice;
use std::time::Instant;

use crate::rules::Domain;
use crate::settings::EnvoyConfig;
use smallvec::SmallVec;
use weir_node::limiter::LimiterError;
use weir_node::settle::Outcome;
use weir_node::telemetry::CountedMethod;
use weir_store::{Answers, Decision, StoreAnswer, no_verdict};
use weir_time::clock;

use super::decide::Outcomes;
use super::questions::Questions;
use super::{
    DescriptorDecision, DescriptorQuestion, EnvoyDecisions, EnvoyLimiter, Loaded, RateLimitAnswer,
    RateLimitAsk, status,
};

impl EnvoyDecisions {
    /// True if the store answers at once, and is asked once: then [`EnvoyDecisions::rate_limit_at_once`] answers.
    #[inline]
    #[must_use]
    pub fn asks_once(&self, envoy: &EnvoyLimiter, ask: &RateLimitAsk<'_>) -> bool {
        let EnvoyConfig { stop_when_over, all_or_none, .. } = &envoy.config;
        let is_alone = all_or_none.is_empty() || all_or_none.by(ask.domain).is_none();
        self.at_once && !stop_when_over && is_alone
    }

    /// Answers as [`EnvoyDecisions::rate_limit`] does, where [`EnvoyDecisions::asks_once`].
    #[inline]
    pub fn rate_limit_at_once<'a>(
        &self,
        envoy: &EnvoyLimiter,
        loaded: &'a Loaded,
        ask: &RateLimitAsk<'_>,
    ) -> Result<RateLimitAnswer<'a>, LimiterError> {
        let (domain, mut ended) = self.begin(envoy, loaded, ask)?;
        let answer = self.answer_at_once(envoy, loaded, domain, ask);
        ended.answered(&answer);
        answer
    }

    fn answer_at_once<'a>(
        &self,
        envoy: &EnvoyLimiter,
        loaded: &'a Loaded,
        domain: Option<&'a Domain>,
        ask: &RateLimitAsk<'_>,
    ) -> Result<RateLimitAnswer<'a>, LimiterError> {
        let mut questions = Questions::new();
        self.pose(&mut questions, envoy, (loaded, domain), ask)?;
        let started = clock::monotonic();
        let answers = self.ask_at_once(&questions, ask.rights.caller());
        let took = clock::monotonic().saturating_duration_since(started);
        let is_decided = |answer: &StoreAnswer| matches!(answer, StoreAnswer::Ready(Ok(_)));
        let decided = answers.each.iter().filter(|answer| is_decided(answer)).count();
        self.recorder.took(CountedMethod::ShouldRateLimit, took, 1, decided as u64);
        let mut statuses = SmallVec::new();
        let asked = questions.iter().filter(|question| question.found.limit().is_some()).count();
        if [decided, answers.each.len(), answers.limits.len()] == [asked; 3]
            && self.recorder.decision_log().is_none()
        {
            // Nothing is to be settled or logged.
            let mut all = answers.each.iter().zip(&answers.limits);
            for question in &mut questions {
                let one = question.found.limit().and_then(|_| match all.next()? {
                    (StoreAnswer::Ready(Ok(verdict)), &limit) => {
                        Some(Outcome::Decided(DescriptorDecision { verdict: *verdict, limit, cached: false }))
                    }
                    _ => None,
                });
                statuses.push(status::status_of(envoy, loaded, domain, question, one.as_ref()));
            }
        } else {
            let outcomes = self.settle_at_once(envoy, &questions, answers, started);
            let outcomes =
                outcomes.inspect_err(|error| tracing::debug!(domain = ask.domain, %error, "rate limit"))?;
            for (question, one) in questions.iter_mut().zip(&outcomes) {
                statuses.push(status::status_of(envoy, loaded, domain, question, one.as_ref()));
            }
        }
        Ok(Self::answer_of(envoy, ask, statuses))
    }

    /// The answers of a store that answers at once, to the questions with a limit.
    #[inline]
    pub(super) fn ask_at_once(&self, questions: &[DescriptorQuestion<'_>], caller: u32) -> Answers {
        let mut answers = Answers::default();
        let of = |question| Some(Decision { caller, ..DescriptorQuestion::decision(question)? });
        if let [only] = questions {
            of(only).iter().for_each(|only| self.store.decide(slice::from_ref(only), &mut answers));
        } else {
            let asked: SmallVec<[_; 4]> = questions.iter().filter_map(of).collect();
            self.store.decide(&asked, &mut answers);
        }
        answers
    }

    /// The outcomes of these answers. All of them are settled, whichever fails.
    #[cold]
    pub(super) fn settle_at_once(
        &self,
        envoy: &EnvoyLimiter,
        questions: &[DescriptorQuestion<'_>],
        answers: Answers,
        started: Instant,
    ) -> Result<Outcomes, LimiterError> {
        let (mut each, mut limits) = (answers.each.into_iter(), answers.limits.into_iter());
        let settled = questions.iter().map(|question| {
            let Some(limit) = question.found.limit() else { return Ok(None) };
            let answer = match each.next() {
                Some(StoreAnswer::Ready(Ok(verdict))) => {
                    let decided = limits.next();
                    let decided = decided.map(|limit| DescriptorDecision { verdict, limit, cached: false });
                    decided.ok_or_else(no_verdict)
                }
                Some(StoreAnswer::Ready(Err(error))) => Err(error),
                Some(StoreAnswer::Later(_)) | None => Err(no_verdict()),
            };
            if let Err(error) = &answer {
                self.count_call(started, Some(error));
            }
            self.settle(envoy, question, limit, (answer, false)).map(Some)
        });
        let settled: Vec<Result<_, LimiterError>> = settled.collect();
        settled.into_iter().collect()
    }
}
