//! Strategies that nodes count on their own (`approximate`), in front of all else but the failure policy.
//!
//! ```text
//!   worker ── decides here, while the node holds a place and owes at most its share ──► table.rs   all workers share it
//!      └───── asks the store about what would exceed the share, one call of a key at a time ──► central.rs
//!   background ── heartbeats of the places, and what the node has admitted, every `sync` ──► upkeep.rs
//! ```
//!
//! `weir_core::approximate` has the rules of the bound. `places.rs` is what a node knows of the places of a strategy, `clocks.rs`
//! what it knows of the store's clocks.
//!
//! A node without a place, a key beyond [`MAX_KEYS`], and the moments in which the window is not certain are decided by the
//! store, at a limit that is smaller by one share. Other strategies pass through at the cost of one comparison.

mod central;
mod clocks;
mod line;
mod moment;
mod places;
mod sets;
mod stats;
mod table;
mod upkeep;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use weir_config::RedisConfig;
use weir_core::approximate::CountOp;
use weir_time::clock::{BootClock, Clock, monotonic};
use weir_time::deadlines::Deadlines;
use weir_units::Micros;

use self::central::PendingCount;
use self::clocks::StoreClocks;
use self::moment::NodeMoment;
use self::places::PlaceSet;
use self::sets::{PlaceSets, WorkerSets};
pub use self::stats::{ApproximateStats, PlaceNote, StrategyCounting};
use self::table::CountTable;
pub use self::table::MAX_KEYS;
use self::verdict::count_op;
use crate::backend::StoreLayer;
pub use crate::redis::counts::APPROXIMATE;
use crate::{
    Answers, BudgetDecision, CountStore, Decision, Store, StoreAnswer, StoreError, Verdicts, check_supported,
};

/// State that all workers of a process share. Clones share it.
#[derive(Clone)]
pub struct ApproximateShared(Arc<ApproximateNode>);

struct ApproximateNode {
    table: CountTable,
    sets: PlaceSets,
    clocks: StoreClocks,
    clock: BootClock,
    /// On which the timers of workers run.
    timed_by: Clock,
    default_deadline: Duration,
    /// Callers that may wait for the answer about one key.
    max_waiting: usize,
}

/// One worker's store, and the counters of its node.
pub struct ApproximateStore<S, C> {
    store: S,
    worker: Arc<ApproximateWorker<C>>,
}

/// State that pending decisions of one worker share.
struct ApproximateWorker<C> {
    node: ApproximateShared,
    counts: C,
    sets: Mutex<WorkerSets>,
    deadlines: Deadlines,
}

impl ApproximateShared {
    /// No counters yet. Callers wait within the bounds of `config`.
    pub fn new(config: &RedisConfig, clock: &Clock) -> Self {
        Self(Arc::new(ApproximateNode {
            table: CountTable::new(),
            sets: PlaceSets::default(),
            clocks: StoreClocks::default(),
            clock: BootClock::from_clock(clock),
            timed_by: clock.clone(),
            default_deadline: config.deadline.into(),
            max_waiting: config.max_waiting,
        }))
    }

    /// Wraps one worker's `store`; `counts` has the counters.
    pub fn before<S: Store, C: CountStore>(&self, store: S, counts: C) -> ApproximateStore<S, C> {
        let (sets, deadlines) = (Mutex::default(), Deadlines::new(&self.0.timed_by));
        let worker = ApproximateWorker { node: self.clone(), counts, sets, deadlines };
        ApproximateStore { store, worker: Arc::new(worker) }
    }
}

impl<S: Store, C: CountStore> StoreLayer<S, C> for ApproximateShared {
    type Store = ApproximateStore<S, C>;

    fn layered(&self, exact: S, states: C) -> Self::Store {
        self.before(exact, states)
    }
}

impl<S: Store, C: CountStore> Store for ApproximateStore<S, C> {
    #[inline]
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        let is_counted = |decision: &Decision<'_>| decision.strategy.approximate().is_some();
        if !decisions.iter().any(is_counted) {
            return self.store.decide(decisions, answers);
        }
        let now = self.worker.node.0.clock.now();
        for of_kind in decisions.chunk_by(|one, other| is_counted(one) == is_counted(other)) {
            match of_kind.first() {
                Some(first) if is_counted(first) => {
                    of_kind.iter().for_each(|decision| self.worker.decide(decision, now, answers));
                }
                _ => self.store.decide(of_kind, answers),
            }
        }
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        self.store.decide_costs(decision)
    }

    fn patience(&self) -> Option<Duration> {
        self.store.patience()
    }

    fn knows_some(&self) -> bool {
        self.store.knows_some()
    }

    fn known(
        &self,
        decisions: &[Decision<'_>],
        answers: &mut Answers,
    ) -> smallvec::SmallVec<[usize; crate::TOGETHER]> {
        self.store.known(decisions, answers)
    }
}

impl<C: CountStore> ApproximateWorker<C> {
    fn decide(self: &Arc<Self>, decision: &Decision<'_>, now: Micros, answers: &mut Answers) {
        let (op, cost) = match asked(decision) {
            Ok(asked) => asked,
            Err(error) => return answers.fail(decision.costs.len(), &error),
        };
        let (node, mut sets) = (&self.node.0, self.sets.lock());
        let set = sets.of(decision.strategy, &node.sets);
        if let (Some(set), CountOp::Charge | CountOp::AtMost) = (set, op) {
            let moment = NodeMoment { now, clocks: &node.clocks };
            if let Some(found) = node.table.decide(set, decision, (op, cost), &moment) {
                return answers.put(1, StoreAnswer::Ready(Ok(found.verdicts(op, decision.strategy))));
            }
        }
        let set = set.cloned();
        drop(sets);
        let own = monotonic() + node.default_deadline;
        let deadline = decision.deadline.map_or(own, |callers| own.min(*callers));
        let pending = PendingCount::new(self, decision, (op, cost), set, deadline);
        answers.later(pending.decide());
    }
}

/// Returns the operation and the cost of a decision at its counter.
fn asked(decision: &Decision<'_>) -> Result<(CountOp, u64), StoreError> {
    check_supported(decision)?;
    if decision.part.is_some_and(|part| !part.id.is_empty()) {
        return Err(StoreError::Unsupported(
            "an id is not defined for strategies with `approximate`: the nodes that count do not know the ids of one another; \
             ask without an id, or use a strategy without `approximate`",
        ));
    }
    let &[cost] = decision.costs else {
        return Err(StoreError::Unsupported(
            "several costs at once are not defined for strategies with `approximate`",
        ));
    };
    let op = count_op(decision.op);
    let op = op.ok_or(StoreError::Unsupported("it is not defined for strategies with `approximate`"))?;
    Ok((op, cost))
}
