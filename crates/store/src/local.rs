//! Decisions of the node itself while the store cannot answer (`on_store_failure: local`), in front of all else.
//!
//! ```text
//!   the store answers   ── what was used of each key, until when ──►  known.rs
//!   the store fails     ── at most its part of each limit ─────────►  the memory store, with a budget of its own
//!                          begins where the store last stood          (nothing is evicted: a state counts until it expires)
//! ```
//!
//! The node decides with the strategy's [`LocalStrategy`](weir_core::strategy::LocalStrategy). Before that, each limit
//! is charged up to the same part of what is known of the store. It is charged once, so that a bucket drains from then
//! on; and never less than was used here, so an outage after an outage is no free refill.
//!
//! With limit' for the part of a limit and n processes that decided in a window: a window in which the store decided
//! nothing admits at most n · limit', any other at most limit + n · limit'. Each restart of a node, loss of the
//! store's data, or difference of clocks adds one limit. What is decided here is not sent to the store afterwards.
//!
//! Other strategies pass through at the cost of one comparison.

mod completed;
mod costs;
mod known;
mod own_strategies;
mod pending;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use weir_config::{MemoryConfig, WhenFull};
use weir_time::clock::{Clock, Monotonic};

use self::completed::CompletedAnswer;
use self::known::KnownUse;
use self::own_strategies::OwnStrategies;
use self::pending::{PendingDecision, Recourse};
use crate::backend::LocalStats;
use crate::memory::{Locator, MemoryStore};
use crate::{Answers, BudgetDecision, Decision, Store, StoreAnswer, TOGETHER, Verdicts};

/// One worker's store, and the states that the node decides on by itself.
pub struct LocalFallback<S> {
    store: S,
    node: LocalShared,
    strategies: OwnStrategies,
}

/// State that all workers of a process share. Clones share it.
#[derive(Clone)]
pub struct LocalShared(Arc<LocalStates>);

struct LocalStates {
    /// Made with the first decision of a strategy that needs it.
    memory: OnceLock<MemoryStore>,
    budget: usize,
    clock: Clock,
    known: KnownUse,
    monotonic: Monotonic,
    origin: Instant,
    decided: AtomicU64,
}

impl LocalShared {
    /// No states yet; at most `budget` bytes of them, and as many of what is known of the store.
    pub fn new(budget: usize, clock: Clock) -> Self {
        let monotonic = Monotonic::from_clock(&clock);
        Self(Arc::new(LocalStates {
            memory: OnceLock::new(),
            budget,
            clock,
            known: KnownUse::new(budget),
            origin: monotonic.now(),
            monotonic,
            decided: AtomicU64::new(0),
        }))
    }

    /// Wraps one worker's `store`.
    pub fn before<S: Store>(&self, store: S) -> LocalFallback<S> {
        LocalFallback { store, node: self.clone(), strategies: OwnStrategies::new(self.clone()) }
    }

    /// Drops expired states, a bounded part per call.
    pub fn sweep(&self) {
        if let Some(memory) = self.0.memory.get() {
            memory.sweep();
        }
    }

    /// Current statistics.
    pub fn stats(&self) -> LocalStats {
        let states = self.0.memory.get().map(MemoryStore::stats).unwrap_or_default();
        LocalStats { decided: self.0.decided.load(Relaxed), states, known: self.0.known.len() }
    }

    fn memory(&self) -> &MemoryStore {
        self.0.memory.get_or_init(|| {
            let budget = self.0.budget;
            // No state of a limit is evicted, and there are no ids.
            let config =
                MemoryConfig { budget, when_full: WhenFull::Refuse, share: Some(budget), id_share: Some(0) };
            MemoryStore::new(&config, self.0.clock.clone())
        })
    }

    /// Microseconds since the table was made.
    fn now(&self) -> u64 {
        let since = self.0.monotonic.now().saturating_duration_since(self.0.origin);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

impl<S: Store> Store for LocalFallback<S> {
    #[inline]
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        if decisions.iter().all(|decision| decision.strategy.local().is_none()) {
            return self.store.decide(decisions, answers);
        }
        let (mut place, _) = answers.end();
        self.store.decide(decisions, answers);
        self.node.memory().locate_each(|locator| {
            for decision in decisions {
                place += self.complete(locator, decision, answers, place);
            }
        });
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        let answer = self.store.decide_costs(decision);
        match decision.strategy.local() {
            None => answer,
            Some(_) => costs::answered(&self.node, decision, answer),
        }
    }

    fn patience(&self) -> Option<Duration> {
        self.store.patience()
    }

    fn knows_some(&self) -> bool {
        self.store.knows_some()
    }

    fn known(&self, decisions: &[Decision<'_>], answers: &mut Answers) -> SmallVec<[usize; TOGETHER]> {
        self.store.known(decisions, answers)
    }
}

impl<S: Store> LocalFallback<S> {
    /// Completes the answer at `place`. Returns how many answers the decision has.
    fn complete<'d>(
        &self,
        locator: &mut Locator<'_, 'd>,
        decision: &Decision<'d>,
        answers: &mut Answers,
        place: usize,
    ) -> usize {
        let Some(answer) = answers.each.get_mut(place) else { return 0 };
        let count = if matches!(answer, StoreAnswer::Later(_)) { 1 } else { decision.costs.len() };
        let recourse = Recourse::new(decision);
        match answer {
            StoreAnswer::Later(later) if recourse.is_concerned() => {
                let pending = PendingDecision::new(&self.strategies, locator, decision, recourse);
                // The placeholder is never polled.
                let later = std::mem::replace(later, Box::pin(std::future::pending()));
                *answer = StoreAnswer::Later(Box::pin(CompletedAnswer { later, pending }));
            }
            StoreAnswer::Ready(Err(error)) if recourse.decides() && !error.is_callers() => {
                let pending = PendingDecision::new(&self.strategies, locator, decision, recourse);
                let mut failed = Err(error.clone());
                *answer = StoreAnswer::Later(Box::pin(async move {
                    pending.after(&mut failed);
                    failed
                }));
            }
            // A cached denial is no answer of the store.
            StoreAnswer::Later(_) | StoreAnswer::Ready(_) => {}
        }
        count
    }
}
