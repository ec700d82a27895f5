//! The use case of leases: resolves the strategy, asks the store, applies the failure policy, records one event.
//!
//! [`Leases::acquire`] is a decision: access lists come first, and the failure policy answers for a store that is away.
//! Renewals and releases are of held leases, so lists and policies do not apply to them.

mod bounds;
mod operator;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use bounds::{MAX_RELEASED, MAX_RTT};
pub use operator::ReleasedLeases;
use weir_config::AccessRight;
use weir_core::key::{KeySecret, write_lease_name};
use weir_core::strategy::{ConcurrencyRule, Resolved, Rules, Strategy, StrategyRule};
use weir_node::limiter::{self, AnswerReserve, LimiterError, Question};
use weir_node::settle::{self, Outcome, StoreDecision};
use weir_node::telemetry::{CountedLease, CountedMethod, CountedOutcome, Recorder, Rejection};
use weir_store::StoreError;
use weir_time::clock;
use weir_units::Micros;

use crate::metrics::{SeenKey, SeenPermits};
use crate::model::{LeaseAnswer, LeaseOp, LeaseOutcome, LeaseRefusal, WorkOutcome};
use crate::store::{LeaseAsk, LeaseHandle, LeaseStore as _};

/// Answers calls about leases from one store under one set of rules. Each worker has its own.
pub struct Leases {
    rules: Arc<Rules>,
    /// Removed strategies, whose leases may still be renewed and released.
    removed: Arc<Rules>,
    store: LeaseHandle,
    recorder: Arc<Recorder>,
    seen: Arc<SeenPermits>,
    reserve: AnswerReserve,
}

/// A question about one lease.
#[derive(Debug, Clone)]
pub struct LeaseQuestion<'a> {
    /// Resource, consumer, strategy, attributes and deadline; the other fields do not apply to leases.
    pub asked: Question<'a>,
    /// The id of the lease.
    pub id: &'a str,
}

/// The store's answer to an acquisition.
#[derive(Debug, Clone, Copy)]
pub struct PermitsDecision {
    /// The store's answer, with the state of the strategy.
    pub answer: LeaseAnswer,
    /// The highest limit of the strategy: a larger weight never passes.
    pub most: u64,
}

/// Outcome of an acquisition. There is a lease only where the store decided.
pub type Acquired = Outcome<PermitsDecision>;

/// Errors of calls about leases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The question was rejected.
    #[error(transparent)]
    Question(#[from] LimiterError),
    /// A lease of this id has another weight.
    #[error("id is \"{id}\": a lease of this id is held with weight {held}, not {weight}")]
    OtherWeight {
        /// The id, fit to be shown.
        id: String,
        /// The permits that the lease holds.
        held: u64,
        /// The permits that were asked for.
        weight: u64,
    },
    /// The store could not renew, release or list.
    #[error("not done: {0}")]
    NotDone(StoreError),
}

impl Leases {
    /// Creates leases that are counted in `recorder`, which was made for the same rules.
    #[must_use]
    pub fn new(
        rules: Arc<Rules>,
        store: LeaseHandle,
        recorder: Arc<Recorder>,
        seen: Arc<SeenPermits>,
    ) -> Self {
        Self { rules, removed: Arc::default(), store, recorder, seen, reserve: AnswerReserve::default() }
    }

    /// Sets the time of callers' deadlines that is kept for answers without the store.
    #[must_use]
    pub fn with_reserve(self, reserve: AnswerReserve) -> Self {
        Self { reserve, ..self }
    }

    /// Returns a copy that serves other rules.
    #[must_use]
    pub fn with_rules(&self, rules: Arc<Rules>, removed: Arc<Rules>, recorder: Arc<Recorder>) -> Self {
        let (store, seen) = (self.store.clone(), Arc::clone(&self.seen));
        Self { rules, removed, store, recorder, seen, reserve: self.reserve }
    }

    /// Acquires `weight` permits for `ttl`, or for the strategy's default. A refusal is an answer, not an error.
    pub async fn acquire(
        &self,
        question: &LeaseQuestion<'_>,
        weight: u64,
        ttl: Option<Micros>,
    ) -> Result<Acquired, LeaseError> {
        let (resolved, rule) = self.resolve(&self.rules, question, AccessRight::Lease)?;
        let ttl = ttl.unwrap_or(rule.numbers().ttl);
        self.checked(bounds::check_weight(weight, rule).and_then(|()| bounds::check_ttl(ttl, rule)))?;
        let started = clock::monotonic();
        let acquired = match resolved.listing {
            Some(listing) => Ok(Outcome::Listed(listing.listed)),
            None => {
                let (lease, op) = ((&question.asked, question.id), LeaseOp::Acquire { weight, ttl });
                let asked = self.ask(lease, &resolved, op, started).await;
                granted(asked, question, (weight, rule.most()), resolved.strategy)
            }
        };
        self.record(question, weight, &resolved, &acquired, started);
        acquired
    }

    /// Extends a lease to `ttl` from now.
    pub async fn renew(
        &self,
        question: &LeaseQuestion<'_>,
        ttl: Option<Micros>,
    ) -> Result<LeaseAnswer, LeaseError> {
        let (resolved, rule) = self.resolve_held(question, AccessRight::Lease)?;
        let ttl = ttl.unwrap_or(rule.numbers().ttl);
        self.checked(bounds::check_ttl(ttl, rule))?;
        self.change(question, &resolved, LeaseOp::Renew { ttl }, CountedMethod::Renew).await
    }

    /// Releases a lease's permits, and reports outcome and duration of the work.
    pub async fn release(
        &self,
        question: &LeaseQuestion<'_>,
        outcome: WorkOutcome,
        rtt: Option<Micros>,
    ) -> Result<LeaseAnswer, LeaseError> {
        let (resolved, _) = self.resolve_held(question, AccessRight::Lease)?;
        self.checked(rtt.map_or(Ok(()), bounds::check_rtt))?;
        let op = LeaseOp::Release { outcome, rtt };
        self.change(question, &resolved, op, CountedMethod::Release).await
    }

    /// Renews or releases.
    async fn change(
        &self,
        question: &LeaseQuestion<'_>,
        resolved: &Resolved<'_>,
        op: LeaseOp,
        method: CountedMethod,
    ) -> Result<LeaseAnswer, LeaseError> {
        let started = clock::monotonic();
        let answer = self.ask((&question.asked, question.id), resolved, op, started).await;
        let counted = match &answer {
            Ok(answer) if answer.outcome == LeaseOutcome::NotHeld => CountedLease::NotHeld,
            Ok(_) => CountedLease::Held,
            Err(_) => CountedLease::Error,
        };
        let took = clock::monotonic().saturating_duration_since(started);
        if self.is_configured(resolved) {
            self.recorder.lease(resolved.index, method, counted, took);
        }
        answer.map_err(LeaseError::NotDone)
    }

    async fn ask(
        &self,
        (asked, id): (&Question<'_>, &str),
        resolved: &Resolved<'_>,
        op: LeaseOp,
        started: Instant,
    ) -> Result<LeaseAnswer, StoreError> {
        let ask = LeaseAsk {
            strategy: resolved.strategy,
            subject: asked.subject(resolved.group),
            id,
            op,
            deadline: asked.deadline.map(|deadline| self.reserve.for_store(deadline, started)),
        };
        let answer = self.store.lease(&ask).await;
        let now = clock::monotonic();
        self.recorder.store_called(now.saturating_duration_since(started), answer.as_ref().err());
        if let Ok(answer) = &answer {
            self.saw(&ask, resolved, answer, now);
        }
        answer
    }

    /// Shows the permits of a key, as an answer says.
    fn saw(&self, ask: &LeaseAsk<'_>, resolved: &Resolved<'_>, answer: &LeaseAnswer, at: Instant) {
        if let Some(rule) = resolved.strategy.permits().filter(|_| self.is_configured(resolved)) {
            let mut name = Vec::with_capacity(128);
            write_lease_name(&mut name, resolved.strategy, &ask.subject);
            let longest = Duration::from_micros(rule.numbers().max_ttl.0);
            let strategy = Arc::clone(resolved.strategy);
            let seen = SeenKey { strategy, held: answer.in_flight, limit: answer.limit, at, longest };
            self.seen.saw(KeySecret::BUILT_IN.hash(&name), seen);
        }
    }

    /// False for a removed strategy, which has no row in the current configuration.
    fn is_configured(&self, resolved: &Resolved<'_>) -> bool {
        let configured = self.rules.strategies().get(resolved.index);
        configured.is_some_and(|strategy| Arc::ptr_eq(strategy, resolved.strategy))
    }

    /// Resolves the strategy and its rule of permits. Fails if the question is invalid.
    fn resolve<'a>(
        &self,
        rules: &'a Rules,
        question: &LeaseQuestion<'_>,
        right: AccessRight,
    ) -> Result<(Resolved<'a>, &'a ConcurrencyRule), LeaseError> {
        if !question.asked.rights.is_all() {
            self.checked(limiter::authorize(rules, right, &question.asked))?;
        }
        let resolved = self.checked(limiter::resolve_any(rules, &question.asked))?;
        if right == AccessRight::Lease {
            self.checked(bounds::check_id(question.id))?;
        }
        let strategy: &Strategy = resolved.strategy;
        match strategy.rule() {
            StrategyRule::Permits(rule) => Ok((resolved, rule)),
            StrategyRule::Rates(_) => self.checked(Err(LimiterError::Unsupported(format!(
                "strategy `{}` has rate limits and no permits; ask RateLimitService.ShouldAllow",
                strategy.name()
            )))),
        }
    }

    /// Resolves the strategy of a held lease, even one that is no longer configured.
    fn resolve_held(
        &self,
        question: &LeaseQuestion<'_>,
        right: AccessRight,
    ) -> Result<(Resolved<'_>, &ConcurrencyRule), LeaseError> {
        if !self.removed.strategies().is_empty() {
            let has_permits = |rules: &Rules| {
                let found = rules.resolve(question.asked.resource, question.asked.strategy);
                found.is_ok_and(|found| found.strategy.permits().is_some())
            };
            if !has_permits(&self.rules) && has_permits(&self.removed) {
                return self.resolve(&self.removed, question, right);
            }
        }
        self.resolve(&self.rules, question, right)
    }

    /// Counts a question that was rejected.
    fn checked<T>(&self, checked: Result<T, impl Into<LimiterError>>) -> Result<T, LeaseError> {
        checked.map_err(|error| {
            let error = error.into();
            match error {
                LimiterError::Refused(_) => {}
                LimiterError::Unknown(_) => self.recorder.rejected(Rejection::Unknown),
                _ => self.recorder.rejected(Rejection::Invalid),
            }
            error.into()
        })
    }

    /// Records an acquisition: counts, log, sample of consumers.
    fn record(
        &self,
        question: &LeaseQuestion<'_>,
        weight: u64,
        resolved: &Resolved<'_>,
        acquired: &Result<Acquired, LeaseError>,
        started: Instant,
    ) {
        let took = clock::monotonic().saturating_duration_since(started);
        let counted = settle::count_as(acquired);
        let row = self.recorder.row(resolved);
        let cost = if counted.is_uncharged() { 0 } else { weight };
        self.recorder.decided(row, CountedMethod::Acquire, counted, cost, took);
        if matches!(counted, CountedOutcome::Denied | CountedOutcome::Never) {
            self.recorder.denied(row, 0);
        }
        if self.recorder.samples() {
            self.recorder.sampled(row, counted, question.asked.consumer);
        }
        tracing::debug!(
            strategy = resolved.strategy.name(),
            resource = question.asked.resource,
            consumer = question.asked.consumer,
            lease = question.id,
            outcome = counted.name(),
            error = acquired.as_ref().err().map(tracing::field::display),
            peer = %weir_grpc::current_peer(),
            took_us = micros(took),
            "acquired"
        );
    }
}

/// Turns the store's answer or error into the caller's outcome, by the failure policy.
fn granted(
    asked: Result<LeaseAnswer, StoreError>,
    question: &LeaseQuestion<'_>,
    (weight, most): (u64, u64),
    strategy: &Strategy,
) -> Result<Acquired, LeaseError> {
    if let Ok(LeaseAnswer { outcome: LeaseOutcome::OtherWeight(held), .. }) = asked {
        return Err(LeaseError::OtherWeight { id: limiter::shown(question.id), held, weight });
    }
    let decision = asked.map(|answer| PermitsDecision { answer, most });
    settle::settle(strategy, decision).map_err(|error| LimiterError::of_store(strategy, error).into())
}

impl StoreDecision for PermitsDecision {
    fn counted(&self) -> CountedOutcome {
        match self.answer.outcome {
            LeaseOutcome::Refused { refusal: LeaseRefusal::Never, .. } => CountedOutcome::Never,
            LeaseOutcome::Refused { .. } => CountedOutcome::Denied,
            LeaseOutcome::Held { is_new: false, .. } => CountedOutcome::Repeated,
            _ => CountedOutcome::Allowed,
        }
    }
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}
