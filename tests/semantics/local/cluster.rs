//! Nodes that share a store which fails, on virtual time.

use std::sync::Arc;

use parking_lot::Mutex;
use weir_config::MemoryConfig;
use weir_core::algorithm::{Algorithm, Op, Share};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, LocalPolicy, Strategy, WhenLocalFull};
use weir_store::local::{LocalFallback, LocalShared};
use weir_store::memory::MemoryStore;
use weir_store::{Answers, Decision, Store, StoreError, Verdicts, at_once, decide_one};
use weir_testing::rules::strategy;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::{Admitted, WINDOW, random::Random};

/// A multiple of the window.
const BEGIN: u64 = 1_704_067_200_000_000;

/// The exceptions that happen, or that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceptions {
    pub(super) restarts: bool,
    pub(super) losses: bool,
    pub(super) skew: bool,
}

impl Exceptions {
    pub(super) const NONE: Self = Self { restarts: false, losses: false, skew: false };
}

/// The answer of the store to the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Answers,
    /// The store decides, and nobody hears of it.
    LosesTheReply,
    Nothing,
}

/// A store that fails when it is told to. It answers later, as Redis does. Clones share it.
#[derive(Clone)]
pub(super) struct FailingStore(Arc<Mutex<(MemoryStore, Does)>>);

impl FailingStore {
    pub(super) fn new(clock: &ManualClock) -> Self {
        Self(Arc::new(Mutex::new((Self::empty(clock), Does::Answers))))
    }

    pub(super) fn empty(clock: &ManualClock) -> MemoryStore {
        MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()))
    }

    pub(super) fn next(&self, does: Does) {
        self.0.lock().1 = does;
    }
}

impl Store for FailingStore {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        let (memory, does) = &*self.0.lock();
        for decision in decisions {
            let decided = (*does != Does::Nothing).then(|| at_once(decide_one(memory, decision).verdicts()));
            let answered = decided.flatten().filter(|_| *does == Does::Answers);
            answers.later(async move { answered.unwrap_or(Err(StoreError::Timeout)) });
        }
    }
}

/// One node, which keeps its own states.
struct Node {
    clock: ManualClock,
    /// Time by which the node's clock is ahead.
    ahead: u64,
    store: LocalFallback<FailingStore>,
}

pub(super) struct LocalCluster {
    strategy: Arc<Strategy>,
    limit: u64,
    part: u64,
    shared: FailingStore,
    clock: ManualClock,
    nodes: Vec<Node>,
    pub(super) fails: bool,
    pub(super) now: u64,
    pub(super) admitted: Vec<Admitted>,
    /// Times at which the store decided, also if its reply was lost.
    decided: Vec<u64>,
    /// Times at which a unit was given back.
    refunds: Vec<u64>,
    /// Times at which a node restarted.
    restarts: Vec<u64>,
    losses: Vec<u64>,
}

impl LocalCluster {
    pub(super) fn new(algorithm: Algorithm, nodes: usize, random: &mut Random, allowed: Exceptions) -> Self {
        let part = 1 + random.below(4) as u16;
        let share = Share::new(part, 4).unwrap();
        let policy = FailurePolicy::Local(LocalPolicy { share, when_full: WhenLocalFull::Deny });
        let strategy = strategy("s", &[("each", &[Field::Consumer], algorithm)], policy);
        let strategy = Arc::new(strategy.with_local().unwrap());
        let own = strategy.local().unwrap().strategy().algorithms()[0].limit();
        let clock = ManualClock::at(Micros(BEGIN));
        let shared = FailingStore::new(&clock);
        let mut cluster = Self {
            limit: algorithm.limit(),
            part: own,
            strategy,
            shared,
            clock,
            nodes: Vec::new(),
            fails: false,
            now: 0,
            admitted: Vec::new(),
            decided: Vec::new(),
            refunds: Vec::new(),
            restarts: Vec::new(),
            losses: Vec::new(),
        };
        for _ in 0..nodes {
            let ahead = if allowed.skew { random.below(WINDOW) } else { 0 };
            cluster.nodes.push(cluster.node(ahead));
        }
        cluster
    }

    fn node(&self, ahead: u64) -> Node {
        let clock = ManualClock::at(Micros(BEGIN + self.now + ahead));
        let local = LocalShared::new(1 << 20, Clock::Manual(clock.clone()));
        Node { clock, ahead, store: local.before(self.shared.clone()) }
    }

    pub(super) fn advance(&mut self, by: u64) {
        self.now += by;
        self.clock.set(Micros(BEGIN + self.now));
        for node in &self.nodes {
            node.clock.set(Micros(BEGIN + self.now + node.ahead));
        }
    }

    pub(super) fn call(&mut self, node: usize, cost: u64, random: &mut Random) {
        // While it answers, one reply in sixteen is lost all the same.
        let does = match (self.fails, random.below(16)) {
            (_, 0) => Does::LosesTheReply,
            (false, _) => Does::Answers,
            (true, _) => Does::Nothing,
        };
        if does != Does::Nothing {
            self.decided.push(self.now);
        }
        let verdicts = self.ask(node, Op::Charge, cost, does);
        let local = verdicts.local.is_some();
        assert_eq!(local, does != Does::Answers, "the store decides whenever it answers");
        if verdicts.decisions[0].allowed {
            self.admitted.push(Admitted { at: self.now, cost, by: local.then_some(node) });
        }
    }

    /// Gives one unit back, to the store or to the node.
    pub(super) fn refund(&mut self, node: usize) {
        self.refunds.push(self.now);
        self.ask(node, Op::Refund, 1, if self.fails { Does::Nothing } else { Does::Answers });
    }

    fn ask(&self, node: usize, op: Op, cost: u64, does: Does) -> Verdicts {
        self.shared.next(does);
        let subject = Subject { resource: "r", consumer: "c", ..Subject::default() };
        let costs = [cost];
        let decision = Decision::new(&self.strategy, subject, op, &costs);
        at_once(decide_one(&self.nodes[node].store, &decision).verdicts()).unwrap().unwrap()
    }

    /// A node forgets its own states, and what it knows.
    pub(super) fn restart(&mut self, node: usize) {
        self.restarts.push(self.now);
        self.nodes[node] = self.node(self.nodes[node].ahead);
    }

    /// The store forgets everything.
    pub(super) fn lose_data(&mut self) {
        self.losses.push(self.now);
        self.shared.0.lock().0 = FailingStore::empty(&self.clock);
    }

    /// The units admitted from `from` until before `to` that are above the bound.
    pub(super) fn excess_in(&self, drains: bool, (from, to): (u64, u64), counts: Exceptions) -> u64 {
        let within = |at: &&u64| (from..to).contains(*at);
        let inside = || self.admitted.iter().filter(|one| (from..to).contains(&one.at));
        let total: u64 = inside().map(|one| one.cost).sum();
        let deciders = (0..self.nodes.len()).filter(|node| inside().any(|one| one.by == Some(*node)));
        let n = deciders.clone().count() as u64;
        // A bucket of `units` per window gives that many, and what flows back meanwhile.
        let of = |units: u64| if drains { units + (units * (to - 1 - from)).div_ceil(WINDOW) } else { units };
        let decided = self.decided.iter().any(|at| (from..to).contains(at));
        // What was given back may be used again.
        let refunds = self.refunds.iter().filter(within).count() as u64;
        let mut bound = refunds + n * of(self.part) + if decided { of(self.limit) } else { 0 };
        if counts.restarts {
            bound += self.restarts.iter().filter(within).count() as u64 * self.part;
        }
        if counts.losses {
            bound += self.losses.iter().filter(within).count() as u64 * self.limit;
        }
        if counts.skew {
            bound += deciders.filter(|node| self.nodes[*node].ahead > 0).count() as u64 * self.part;
        }
        total.saturating_sub(bound)
    }
}
