//! Shadow strategies: decided beside the live one, counted and compared, and never enforced.
//!
//! A shadow is decided for every call that the live strategy has decided, whatever the outcome, also if the denial
//! was cached. Nobody waits for it. If the store answers later, both are sent before the runtime goes on, so that the
//! store gets them together.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use weir_core::algorithm::Op;
use weir_core::strategy::{Field, Listed, Resolved, Rules, Shadow, Strategy};
use weir_store::{Decision, LimitSet, Part, Store, StoreAnswer, StoreError, TOGETHER, Verdicts, decide_one};

use super::costed_shadow::NamedUse;
use super::decided::{LimiterError, LimitsDecision};
use super::decision_log::named;
use super::live_waits::LiveWaits;
use super::waiting::{Begun, Waiting, WaitingStage};
use super::{Limiter, Question, Round, bounds, costs};
use crate::telemetry::{CountedOutcome, Recorder};

/// State of the live call.
enum LiveCall {
    /// Not decided; its shadows are not decided either.
    NotAsked,
    /// Allowed or denied; `None` if the store failed.
    Ended(Option<bool>),
    /// Pending, with a receiver for each shadow.
    Waits(SmallVec<[oneshot::Receiver<bool>; 1]>),
}

/// Outcome of the live call, or the receiver of it.
enum LiveAllowed {
    Now(Option<bool>),
    Later(oneshot::Receiver<bool>),
}

/// A shadow, and the means to count its outcome.
struct ShadowCount {
    rules: Arc<Rules>,
    recorder: Arc<Recorder>,
    /// Index of the live strategy, and of the shadow among its shadows.
    place: (usize, usize),
}

impl LiveCall {
    /// The state of `begun`, which is under strategy number `index` of `rules`.
    fn new(begun: &mut Begun<'_, '_>, index: usize, rules: &Rules) -> Self {
        match begun {
            Begun::Answered(Ok(answer)) => Self::Ended(Some(answer.outcome.is_allowed())),
            Begun::Answered(Err(LimiterError::Store { .. })) => Self::Ended(None),
            Begun::Answered(Err(_)) => Self::NotAsked,
            Begun::Waiting(Waiting { stage: WaitingStage::Advice(_, _, verdicts), .. }) => {
                Self::Ended(verdicts.decisions.first().map(|verdict| verdict.allowed))
            }
            Begun::Waiting(waiting) => {
                let shadows = rules.shadows(index).len();
                let (senders, receivers) = (0..shadows).map(|_| oneshot::channel()).unzip();
                let live = LiveWaits { index, shadows: senders };
                waiting.notes.get_or_insert_default().live = Some(live);
                Self::Waits(receivers)
            }
        }
    }

    /// The outcome to compare the next shadow with; `None` if there is nothing to decide.
    fn take(&mut self) -> Option<LiveAllowed> {
        match self {
            Self::NotAsked => None,
            Self::Ended(allowed) => Some(LiveAllowed::Now(*allowed)),
            Self::Waits(receivers) => receivers.pop().map(LiveAllowed::Later),
        }
    }
}

impl<'a, S: Store> Round<'a, S> {
    /// Decides several questions as [`Round::decide`] does, and then the shadows of each.
    #[cold]
    pub(super) fn decide_with_shadows<'q, 'm: 'q>(
        &mut self,
        questions: impl Iterator<Item = &'q Question<'m>>,
        mut each: impl FnMut(Begun<'q, '_>),
    ) where
        'a: 'q,
    {
        let limiter = self.limiter();
        let questions: SmallVec<[&Question<'m>; TOGETHER]> = questions.collect();
        let mut lives = SmallVec::<[LiveCall; TOGETHER]>::new();
        self.decide_live(questions.iter().copied(), |mut begun| {
            // Limits that requests bring along have no shadows, and a peek is no call.
            let asked = questions.get(lives.len()).filter(|asked| !asked.peek && asked.inline().is_none());
            lives.push(asked.map_or(LiveCall::NotAsked, |asked| limiter.live_call(asked, &mut begun)));
            each(begun);
        });
        for (question, live) in questions.into_iter().zip(lives) {
            limiter.decide_shadows(question, live);
        }
    }
}

impl<S: Store> Limiter<S> {
    /// State of the live call. Its limits in shadow mode are counted as soon as it is decided.
    fn live_call(&self, asked: &Question<'_>, begun: &mut Begun<'_, '_>) -> LiveCall {
        let resolved = self.rules.resolve(asked.resource, asked.strategy);
        let Ok(Resolved { index, .. }) = resolved else { return LiveCall::NotAsked };
        if let Begun::Answered(Ok(answer)) = begun {
            self.count_shadow_limits(index, &answer.outcome);
        }
        LiveCall::new(begun, index, &self.rules)
    }

    fn decide_shadows(&self, question: &Question<'_>, mut live: LiveCall) {
        if matches!(live, LiveCall::NotAsked) {
            return;
        }
        let Ok(resolved) = self.rules.resolve(question.resource, question.strategy) else { return };
        for (number, shadow) in self.rules.shadows(resolved.index).iter().enumerate() {
            let Some(live) = live.take() else { return };
            let count = self.shadow_count((resolved.index, number));
            match self.decide_shadow(question, &resolved, shadow) {
                Ok(StoreAnswer::Ready(result)) => count.ended(outcome_of(&result), live),
                Ok(StoreAnswer::Later(later)) => {
                    spawn(async move { count.waited(outcome_of(&later.await), live).await });
                }
                Err(outcome) => count.ended(outcome, live),
            }
        }
    }

    /// Puts a question to the store for a shadow, or says what needs no store.
    fn decide_shadow(
        &self,
        question: &Question<'_>,
        resolved: &Resolved<'_>,
        shadow: &Shadow,
    ) -> Result<StoreAnswer<Verdicts>, CountedOutcome> {
        let found = self.rules.shadow_for(shadow, question.resource, question.consumer);
        // The live strategy may count by less than its shadow.
        bounds::check_needed(question, found.strategy).map_err(|_| CountedOutcome::Error)?;
        match found.listed {
            Some(Listed::Deny) => return Err(CountedOutcome::DenyList),
            Some(Listed::Allow) => return Err(CountedOutcome::AllowList),
            None => {}
        }
        let cost = match found.strategy.costed() {
            None => &question.cost,
            Some(costed) => match costs::plain_cost(question, found.strategy, costed) {
                Ok(Some(cost)) => cost,
                Ok(None) => return self.ask_costed((question, resolved.group), (found.strategy, costed)),
                Err(_) => return Err(CountedOutcome::Error),
            },
        };
        let decision = Decision {
            part: question.part(),
            deadline: question.deadline.as_ref(),
            caller: question.caller,
            ..Decision::new(
                found.strategy,
                question.subject(resolved.group),
                question.op(),
                std::slice::from_ref(cost),
            )
        };
        Ok(decide_one(&*self.store, &decision))
    }

    /// Makes the change of a debit, a cancellation, a refund or a reset also to the shadows of its strategy. `used` is what a
    /// debit says of costs by name.
    #[cold]
    pub(super) fn change_shadows(&self, decision: &Decision<'_>, used: Option<NamedUse<'_>>) {
        if matches!(decision.op, Op::Peek | Op::Count { .. }) {
            return;
        }
        let Decision { strategy: live, subject, op, part, .. } = *decision;
        let Ok(resolved) = self.rules.resolve(subject.resource, live.name()) else { return };
        let names = named(live, op, part);
        for shadow in self.rules.shadows(resolved.index) {
            let strategy = self.rules.shadow_for(shadow, subject.resource, subject.consumer).strategy;
            let limits = meant(strategy, op, &names);
            if limits == LimitSet::NONE {
                continue;
            }
            let part = Part { limits, id: part.map_or("", |part| part.id) };
            let shadowed = Decision { strategy, part: Some(&part), ..*decision };
            if let Some(StoreAnswer::Later(later)) = self.change_shadow(&shadowed, used) {
                spawn(async move {
                    let error = later.await.err();
                    tracing::debug!(error = error.as_ref().map(tracing::field::display), "shadow changed");
                });
            }
        }
    }

    fn shadow_count(&self, place: (usize, usize)) -> ShadowCount {
        ShadowCount { rules: Arc::clone(&self.rules), recorder: Arc::clone(&self.recorder), place }
    }
}

impl ShadowCount {
    /// Counts what a shadow says, and compares it with the live call as soon as that is known.
    fn ended(self, outcome: CountedOutcome, live: LiveAllowed) {
        match live {
            LiveAllowed::Now(live) => self.compare(outcome, live),
            later @ LiveAllowed::Later(_) => spawn(self.waited(outcome, later)),
        }
    }

    async fn waited(self, outcome: CountedOutcome, live: LiveAllowed) {
        let live = match live {
            LiveAllowed::Now(live) => live,
            // A caller that has given up has no answer to compare.
            LiveAllowed::Later(live) => live.await.ok(),
        };
        self.compare(outcome, live);
    }

    fn compare(self, outcome: CountedOutcome, live: Option<bool>) {
        let Self { rules, recorder, place: (index, number) } = self;
        let Some(shadow) = rules.shadows(index).get(number) else { return };
        let differs = matches!((live, outcome.is_allowed()), (Some(live), Some(allowed)) if live != allowed);
        if recorder.shadow_decided(shadow.pair(), outcome, differs) {
            let strategy = rules.strategies().get(index).map_or("", |strategy| strategy.name());
            tracing::info!(
                strategy,
                shadow = shadow.name(),
                live,
                outcome = outcome.name(),
                "a shadow differs"
            );
        }
    }
}

/// The limits of a shadow that a refund or reset changes: those with the given names, or the operation's default
/// ones.
fn meant(strategy: &Strategy, op: Op, names: &[&str]) -> LimitSet {
    if !matches!(op, Op::Refund | Op::Reset) {
        return LimitSet::ALL;
    }
    let limits = strategy.limits().iter().enumerate().filter(|(_, limit)| match op {
        // Nothing can be given back to a limit that counts denied attempts.
        Op::Refund if limit.algorithm.counts_denied() => false,
        Op::Refund => names.is_empty() || names.contains(&&*limit.name),
        _ if names.is_empty() => limit.scope.has(Field::Consumer),
        _ => names.contains(&&*limit.name),
    });
    limits.fold(LimitSet::NONE, |set, (index, _)| set.with(index))
}

/// Shadows have no failure policy.
fn outcome_of(result: &Result<Verdicts, StoreError>) -> CountedOutcome {
    let decided = result.as_ref().ok().and_then(|verdicts| verdicts.get(0));
    let costs = result.as_ref().ok().and_then(|verdicts| verdicts.budget.as_deref());
    decided.map_or(CountedOutcome::Error, |(verdict, limits)| {
        LimitsDecision { verdict: *verdict, limits, costs }.counted_by_charge()
    })
}

/// Runs `work` on this worker. The store bounds how long it waits.
fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    // Without a runtime the worker is stopping.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(work);
    }
}
