//! One call in flight for each set of keys: what comes meanwhile is decided together afterwards.
//!
//! ```text
//!   caller 1   ├── alone ──┤
//!   caller 2      ├────────┼── together: ──┤          one call, costs in the order they came,
//!   caller 3           ├───┼── 2, 3 ───────┤          each with an answer of its own
//!   caller 4                    ├──────────┼── 4 ──┤
//! ```
//!
//! Exact: every caller's decision is made while it waits, and in an order that has the callers of one call
//! in the order they came. A key is asked for once per round trip, however many ask; nothing waits for a
//! timer; keys that nobody else asks for cost one look into a map.
//!
//! A call for one caller is part of that caller, and ends with it. A call for several is a task of its
//! own: a caller who gives up loses its own answer only. Who has given up or run out of time before the
//! call leaves is not part of it, and is charged nothing.
//!
//! Who is known to be denied (`denials.rs`) does not wait, and those who did are not asked for if by then all of
//! them are.
//!
//! Decisions that share some of their keys only (a counter for all beside one for each) are passed through:
//! between them there would be no order.

mod owned;
mod queue;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::owned::Owned;
use self::queue::{ByKey, Queue, Waiter};
use super::{AreKnown, Decision, Ended, Part, Single, Store, StoreError, Verdicts};
use crate::config::RedisConfig;
use weir_core::algorithm::Op;
use weir_core::key::KeySecret;
use weir_time::clock::monotonic;
use weir_time::deadlines::{Deadlines, Passed};

/// One worker's calls in flight, before its store.
pub struct Coalesce<S>(Arc<Inner<S>>);

struct Inner<S> {
    store: S,
    enabled: bool,
    /// How long a caller waits who has no deadline of its own.
    patience: Duration,
    max_waiting: usize,
    waiting: AtomicUsize,
    deadlines: Deadlines,
    secret: KeySecret,
    /// For each set of keys with a call in flight, who waits for the next one.
    flights: Mutex<HashMap<u128, Queue, ByKey>>,
}

/// What becomes of a caller.
enum Join {
    /// There is no call in flight: it makes one.
    First,
    /// Its answer was known.
    Known(Verdicts),
    /// It waits for the next call, but no longer than until its deadline.
    Waits(Instant, VerdictReceiver),
}

/// Comes when the next call has been answered.
type VerdictReceiver = oneshot::Receiver<Result<Verdicts, StoreError>>;

impl<S: Store> Coalesce<S> {
    /// One worker's, before `store`. Callers wait within the bounds of `config`, on a runtime with I/O.
    #[must_use]
    pub fn before(store: S, config: &RedisConfig) -> Self {
        Self(Arc::new(Inner {
            store,
            enabled: config.coalesce,
            patience: config.deadline.into(),
            max_waiting: config.max_waiting,
            waiting: AtomicUsize::new(0),
            deadlines: Deadlines::exact(),
            secret: KeySecret::random(),
            flights: Mutex::default(),
        }))
    }
}

impl<S: Store> Store for Coalesce<S> {
    fn knows_some(&self) -> bool {
        self.0.store.knows_some()
    }

    fn known_each(&self, singles: &[Single<'_>], known: &mut AreKnown, out: &mut Ended) {
        self.0.store.known_each(singles, known, out);
    }

    async fn decide(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> Result<(), StoreError> {
        let inner = &self.0;
        let [cost] = *costs else { return inner.store.decide(decision, op, costs, out).await };
        if !inner.coalesces(decision, op) {
            return inner.store.decide(decision, op, costs, out).await;
        }
        // Of a strategy and its overrides, which have keys in common.
        let family = decision.strategy.family() as u64;
        let key = inner.secret.hash_fields(family, decision.strategy, &decision.subject);
        let (deadline, waiting) = match inner.join(key, decision, op, cost)? {
            Join::Waits(deadline, waiting) => (deadline, waiting),
            Join::Known(known) => {
                *out = known;
                return Ok(());
            }
            Join::First => {
                let _flight = Flight { inner, key, decision };
                return inner.store.decide(decision, op, costs, out).await;
            }
        };
        let _place = WaitingPlace(&inner.waiting);
        match inner.deadlines.until(deadline, waiting).await {
            Ok(Ok(answer)) => {
                *out = answer?;
                Ok(())
            }
            Ok(Err(_)) => Err(StoreError::Unavailable("the worker stops".into())),
            Err(Passed) => Err(StoreError::Timeout),
        }
    }
}

impl<S: Store> Inner<S> {
    fn coalesces(&self, decision: &Decision<'_>, op: Op) -> bool {
        self.enabled
            && matches!(op, Op::Charge | Op::Peek)
            && decision.part == Part::ALL
            && !decision.strategy.shares_counters()
    }

    /// Waits for the next call, where one is in flight.
    fn join(&self, key: u128, decision: &Decision<'_>, op: Op, cost: u64) -> Result<Join, StoreError> {
        let mut flights = self.flights.lock();
        let Some(queue) = flights.get_mut(&key) else {
            flights.insert(key, Queue::default());
            return Ok(Join::First);
        };
        if let Some(known) = self.known(decision, op, cost) {
            return Ok(Join::Known(known));
        }
        if self.waiting.fetch_add(1, Relaxed) >= self.max_waiting {
            self.waiting.fetch_sub(1, Relaxed);
            return Err(StoreError::Overloaded(self.max_waiting));
        }
        let own = monotonic() + self.patience;
        let deadline = decision.deadline.map_or(own, |callers| callers.min(own));
        let (reply, waiting) = oneshot::channel();
        let strategy = Arc::clone(decision.strategy);
        queue.push(Waiter { strategy, op, cost, deadline, reply });
        Ok(Join::Waits(deadline, waiting))
    }

    /// The answer, if the store knows it without a call: one in flight may hang.
    fn known(&self, decision: &Decision<'_>, op: Op, cost: u64) -> Option<Verdicts> {
        if !self.store.knows_some() {
            return None;
        }
        let Decision { strategy, subject, .. } = *decision;
        let single = Single { strategy, subject, cost, peek: op == Op::Peek };
        let (mut known, mut ended) = (AreKnown::new(), Ended::default());
        self.store.known_each(&[single], &mut known, &mut ended);
        let verdict = ended.decisions.pop()?.ok()?;
        Some(Verdicts { decisions: [verdict].into(), limits: ended.limits.as_slice().into() })
    }

    /// Decides for all who wait, until nobody does.
    async fn serve(self: Arc<Self>, key: u128, whose: Owned) {
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
            let mut out = Verdicts::default();
            let decision = whose.decision(call.strategy(), call.deadline());
            let result = self.store.decide(&decision, call.op(), &call.costs(), &mut out).await;
            call.answer(result.map(|()| out));
        }
    }
}

/// The call of one caller. However it ends, who came meanwhile goes on.
struct Flight<'a, 'd, S: Store> {
    inner: &'a Arc<Inner<S>>,
    key: u128,
    decision: &'a Decision<'d>,
}

impl<S: Store> Drop for Flight<'_, '_, S> {
    fn drop(&mut self) {
        let mut flights = self.inner.flights.lock();
        let waited_for = flights.get(&self.key).is_some_and(|queue| !queue.is_empty());
        // No runtime: the worker stops, and waiting callers get an error.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if waited_for => {
                runtime.spawn(Arc::clone(self.inner).serve(self.key, Owned::of(&self.decision.subject)));
            }
            _ => {
                flights.remove(&self.key);
            }
        }
    }
}

/// A task that serves a queue. If it is dropped with its runtime, nobody may wait for it.
struct Served<'a, S> {
    inner: &'a Inner<S>,
    key: u128,
}

impl<S> Drop for Served<'_, S> {
    fn drop(&mut self) {
        self.inner.flights.lock().remove(&self.key);
    }
}

/// One of the bounded places of those who wait.
struct WaitingPlace<'a>(&'a AtomicUsize);

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
