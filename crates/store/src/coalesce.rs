//! Coalescing: one call in flight for each set of keys. Callers that come meanwhile are decided together afterwards.
//!
//! ```text
//!   caller 1   ├── alone ──┤
//!   caller 2      ├────────┼── together: ──┤          one call, costs in the order of arrival,
//!   caller 3           ├───┼── 2, 3 ───────┤          each with an answer of its own
//!   caller 4                    ├──────────┼── 4 ──┤
//! ```
//!
//! It is exact: every decision is made while its caller waits, and the callers of one call are decided in their order. A
//! key is asked for once per round trip, however many callers ask. Nothing waits for a timer. A key that no other caller
//! asks for costs one lookup in a map.
//!
//! A call for one caller is part of that caller, and ends with it. A call for several is a task of its own: a caller that
//! gives up loses only its own answer. A caller that has given up, or is out of time, before the call leaves is no part
//! of it and is charged nothing.
//!
//! A caller with a cached denial (`denials.rs`) does not wait. If all waiting callers have one by the time the call would
//! leave, no call is made.
//!
//! Decisions that share only some of their keys (a counter for all beside one for each) are passed through: between them
//! there would be no order.

mod queue;

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::oneshot;
use weir_config::RedisConfig;
use weir_core::algorithm::Op;
use weir_core::key::KeySecret;
use weir_time::clock::{Clock, monotonic};
use weir_time::deadlines::{Deadlines, Passed};

use self::queue::{ByKey, Queue, Waiter};
use super::{
    Answers, BudgetDecision, Decision, OwnedSubject, Store, StoreAnswer, StoreError, TOGETHER, Verdicts,
    decide_one,
};

/// One worker's calls in flight, before its store.
pub struct Coalesce<S>(Arc<Inner<S>>);

struct Inner<S> {
    store: S,
    enabled: bool,
    /// Timeout of a caller without a deadline.
    default_deadline: Duration,
    max_waiting: usize,
    waiting: AtomicUsize,
    deadlines: Deadlines,
    secret: KeySecret,
    /// For each set of keys with a call in flight, the callers that wait for the next one.
    flights: Mutex<HashMap<u128, Queue, ByKey>>,
}

/// The caller's part in the calls for its keys.
enum Join {
    /// No call is in flight, so it makes one.
    Leader,
    Cached(StoreAnswer<Verdicts>),
    /// Waits for the next call, until its deadline at most.
    Follower(Instant, VerdictReceiver),
}

/// Receives the verdict of the next call.
type VerdictReceiver = oneshot::Receiver<Result<Verdicts, StoreError>>;

impl<S: Store> Coalesce<S> {
    /// Wraps one worker's `store`. Callers wait within the bounds of `config`, on a runtime with I/O.
    pub fn before(store: S, config: &RedisConfig) -> Self {
        Self::on(&Clock::System, store, config)
    }

    /// Creates the store on another clock than the machine's.
    pub fn on(clock: &Clock, store: S, config: &RedisConfig) -> Self {
        Self(Arc::new(Inner {
            store,
            enabled: config.coalesce,
            default_deadline: config.deadline.into(),
            max_waiting: config.max_waiting,
            waiting: AtomicUsize::new(0),
            deadlines: Deadlines::new(clock),
            secret: KeySecret::random(),
            flights: Mutex::default(),
        }))
    }
}

impl<S: Store> Store for Coalesce<S> {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        let end = answers.end();
        let has_one_cost = |decision: &Decision<'_>| decision.costs.len() == 1;
        let places = if self.knows_some() && decisions.iter().all(has_one_cost) {
            self.known(decisions, answers)
        } else {
            SmallVec::new()
        };
        if places.is_empty() {
            decisions.iter().for_each(|decision| self.0.begin(decision, answers));
        } else if places.len() < decisions.len() {
            self.0.begin_others(decisions, &places, end, answers);
        }
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        self.0.store.decide_costs(decision)
    }

    fn patience(&self) -> Option<Duration> {
        self.0.store.patience()
    }

    fn knows_some(&self) -> bool {
        self.0.store.knows_some()
    }

    fn known(&self, decisions: &[Decision<'_>], answers: &mut Answers) -> SmallVec<[usize; TOGETHER]> {
        self.0.store.known(decisions, answers)
    }
}

impl<S: Store> Inner<S> {
    /// Begins the decisions without a cached answer, and merges the cached answers, which were appended since `end`,
    /// in order.
    fn begin_others(
        self: &Arc<Self>,
        decisions: &[Decision<'_>],
        places: &[usize],
        end: (usize, usize),
        answers: &mut Answers,
    ) {
        let known = answers.split_off(end);
        let (mut each, mut limits) = (known.each.into_iter(), known.limits.into_iter());
        let mut places = places.iter().peekable();
        for (place, decision) in decisions.iter().enumerate() {
            if places.next_if_eq(&&place).is_some() {
                answers.each.extend(each.next());
                answers.limits.extend(limits.by_ref().take(decision.limits().count()));
            } else {
                self.begin(decision, answers);
            }
        }
    }

    /// Waits for the next call for the same keys if one is in flight, or else makes it.
    fn begin(self: &Arc<Self>, decision: &Decision<'_>, answers: &mut Answers) {
        let &[cost] = decision.costs else { return self.store.decide(slice::from_ref(decision), answers) };
        if !self.coalesces(decision) {
            return self.store.decide(slice::from_ref(decision), answers);
        }
        // A strategy and its overrides are one family: they share keys.
        let family = decision.strategy.family() as u64;
        let key = self.secret.hash_fields(family, decision.strategy, &decision.subject);
        match self.join(key, decision, cost) {
            Ok(Join::Leader) => self.fly(key, decision, answers),
            Ok(Join::Cached(decided)) => answers.put(1, decided),
            Ok(Join::Follower(deadline, waiting)) => {
                let place = WaitingPlace(Arc::clone(self));
                answers.later(async move { place.0.wait(deadline, waiting).await });
            }
            Err(error) => answers.fail(1, &error),
        }
    }

    fn coalesces(&self, decision: &Decision<'_>) -> bool {
        self.enabled
            && matches!(decision.op, Op::Charge | Op::Peek)
            && decision.part.is_none()
            && !decision.strategy.shares_counters()
    }

    /// Joins the next call if one is in flight.
    fn join(&self, key: u128, decision: &Decision<'_>, cost: u64) -> Result<Join, StoreError> {
        let mut flights = self.flights.lock();
        let Some(queue) = flights.get_mut(&key) else {
            flights.insert(key, Queue::default());
            return Ok(Join::Leader);
        };
        // Checked regardless of the lookup credit: the call in flight may hang.
        if let Some(known) = self.known(decision) {
            return Ok(Join::Cached(known));
        }
        if self.waiting.fetch_add(1, Relaxed) >= self.max_waiting {
            self.waiting.fetch_sub(1, Relaxed);
            return Err(StoreError::Overloaded(self.max_waiting));
        }
        let own = monotonic() + self.default_deadline;
        let deadline = decision.deadline.map_or(own, |callers| own.min(*callers));
        let (reply, waiting) = oneshot::channel();
        let strategy = Arc::clone(decision.strategy);
        queue.push(
            Waiter { strategy, op: decision.op, cost, deadline, caller: decision.caller, reply },
            &decision.subject,
        );
        Ok(Join::Follower(deadline, waiting))
    }

    fn known(&self, decision: &Decision<'_>) -> Option<StoreAnswer<Verdicts>> {
        let mut answers = Answers::default();
        let places = self.store.known(slice::from_ref(decision), &mut answers);
        (!places.is_empty()).then(|| answers.take_from((0, 0)))
    }

    async fn wait(&self, deadline: Instant, waiting: VerdictReceiver) -> Result<Verdicts, StoreError> {
        match self.deadlines.until(deadline, waiting).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(StoreError::Unavailable("the worker stops".into())),
            Err(Passed) => Err(StoreError::Timeout),
        }
    }

    /// Makes the call of one caller.
    fn fly(self: &Arc<Self>, key: u128, decision: &Decision<'_>, answers: &mut Answers) {
        let end = answers.end();
        self.store.decide(slice::from_ref(decision), answers);
        let flight = Flight { inner: Arc::clone(self), key };
        match answers.take_from(end) {
            StoreAnswer::Later(verdicts) => answers.later(async move {
                let _flight = flight;
                verdicts.await
            }),
            now @ StoreAnswer::Ready(_) => answers.put(1, now),
        }
    }

    /// Decides for the waiting callers until none is left.
    async fn serve(self: Arc<Self>, key: u128, whose: OwnedSubject) {
        let served = Served { inner: &self, key };
        loop {
            let next = {
                let mut flights = self.flights.lock();
                let next = flights.get_mut(&key).and_then(|queue| queue.next(monotonic()));
                if next.is_none() {
                    flights.remove(&key);
                }
                next
            };
            let Some(call) = next else {
                std::mem::forget(served);
                return;
            };
            let decided = {
                let costs = call.costs();
                let decision = Decision::new(call.strategy(), whose.subject(), call.op(), &costs);
                let deadline = call.deadline();
                let caller = call.caller();
                decide_one(&self.store, &Decision { deadline: deadline.as_ref(), caller, ..decision })
            };
            call.answer(decided.verdicts().await);
        }
    }
}

/// The call of one caller. However it ends, the callers that came meanwhile are served.
struct Flight<S: Store> {
    inner: Arc<Inner<S>>,
    key: u128,
}

impl<S: Store> Drop for Flight<S> {
    fn drop(&mut self) {
        let mut flights = self.inner.flights.lock();
        let whose = flights.get_mut(&self.key).and_then(Queue::take_subject);
        // Without a runtime the worker stops, and waiting callers get an error.
        match (tokio::runtime::Handle::try_current(), whose) {
            (Ok(runtime), Some(whose)) => {
                runtime.spawn(Arc::clone(&self.inner).serve(self.key, whose));
            }
            _ => {
                flights.remove(&self.key);
            }
        }
    }
}

/// A task that serves a queue. If it is dropped with its runtime, it removes the queue, so that no caller waits for it.
struct Served<'a, S> {
    inner: &'a Inner<S>,
    key: u128,
}

impl<S> Drop for Served<'_, S> {
    fn drop(&mut self) {
        self.inner.flights.lock().remove(&self.key);
    }
}

struct WaitingPlace<S>(Arc<Inner<S>>);

impl<S> Drop for WaitingPlace<S> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}
