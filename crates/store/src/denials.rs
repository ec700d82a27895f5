//! Denial cache. A denied decision stays denied until its `retry_after`, because without a refund or a reset a limit's
//! state only gets worse. Until then the same decision (the same strategy, keys and cost) need not be asked again, so under
//! an attack the store gets one call for each wait instead of one for each call.
//!
//! ```text
//!   sent ──────── received                                     until = sent + wait
//!     │  the store decides  │  answered here, its waits aged      │  the store is asked again
//!     └─────────────────────┴─────────────────────────────────────┘
//! ```
//!
//! The store decided between *sent* and *received*. The end of an entry is counted from *sent*, so no call is denied that
//! would be admitted. Its `retry_after` is counted from *received*, so no caller who waits is denied twice. An entry lasts
//! `max_age` at most: that is how long another node's refund, or a jump of the server's clock, can stay unseen.
//!
//! Entries of a key end when any worker of this node charges or refunds it: the decision would still be denied, but the
//! cached numbers would be old. They also end when an answer shows a state that no caller has seen yet, because Redis
//! executes a change before its caller gets the answer. Where `remaining` may grow before the cost is admitted, as in a
//! bucket that lacks several tokens, an entry lasts some milliseconds only. Charges of other nodes are not seen here.
//! They can happen only where a cost of 1 would be admitted, so an entry lasts until then at most (`holds.rs`).
//!
//! Of several costs that one call decides, the denials after the last admitted one are cached. So a key that admits one
//! call each millisecond is asked for once or twice in that time, and not for every waiting caller (`coalesce.rs`).
//!
//! Decisions over limits that count denied attempts are not cached: there a denial changes the state.

mod costs;
mod counts;
mod epochs;
mod holds;
mod known;

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use smallvec::SmallVec;

use self::costs::then;
use self::counts::{CacheCounts, WorkerCacheCounts};
use self::epochs::{EPOCHS, Epochs, LAST_SEEN_PLACES, LastSeenPlace, StateChange};
use self::holds::holds;
use self::known::{DenialTable, Known, KnownQuestion};
use super::backend::DenialStats;
use super::{Answers, BudgetDecision, Decision, Store, StoreAnswer, TOGETHER, Verdicts};

use weir_core::algorithm::Op;
use weir_core::key::KeySecret;
use weir_core::strategy::Strategy;
use weir_time::clock::Monotonic;
use weir_units::Micros;

/// One worker's denial cache in front of its store. Pending answers share it.
pub struct Denials<S>(Arc<WorkerDenials<S>>);

struct WorkerDenials<S> {
    store: S,
    /// Clone of this worker, so that no other worker touches its reference count.
    shared: Arc<DenialsShared>,
    known: Mutex<DenialTable>,
    /// Lookups left before a call begins; misses use them up.
    lookup_credit: AtomicU32,
    counts: WorkerCacheCounts,
}

// Adaptive: lookups cost something, so they stop while fewer than one in nine hits.
const HIT_CREDIT: i32 = 8;
const INSERT_CREDIT: i32 = 1;
const MISS_CREDIT: i32 = -1;
const MAX_LOOKUP_CREDIT: u32 = 1024;

/// State of the denial caches that all workers of a node share.
#[derive(Clone)]
pub struct DenialsShared {
    /// Epochs of each tag and of each set of keys. Every change of a state raises one.
    epochs: Arc<[AtomicU64]>,
    /// For each tag, the number of changes under way.
    under_way: Arc<[AtomicU64]>,
    /// The last seen state of each set of keys.
    last_seen: Arc<[LastSeenPlace]>,
    secret: KeySecret,
    clock: Monotonic,
    max_age: Duration,
    counts: CacheCounts,
}

impl DenialsShared {
    /// A cache of denials for at most `max_age`; with 0, every decision goes to the store.
    pub fn new(max_age: Micros, clock: Monotonic) -> Self {
        Self::under(KeySecret::random(), max_age, clock)
    }

    /// Creates the cache with this secret, which determines the keys that collide.
    pub fn under(secret: KeySecret, max_age: Micros, clock: Monotonic) -> Self {
        let counters = || (0..EPOCHS).map(|_| AtomicU64::new(0)).collect();
        let (epochs, under_way) = (counters(), counters());
        let last_seen = (0..LAST_SEEN_PLACES).map(|_| LastSeenPlace::default()).collect();
        Self {
            epochs,
            under_way,
            last_seen,
            secret,
            clock,
            max_age: max_age.into(),
            counts: CacheCounts::default(),
        }
    }

    /// Wraps one worker's `store`.
    pub fn before<S: Store>(&self, store: S) -> Denials<S> {
        let (shared, known, lookup_credit) = (Arc::new(self.clone()), Mutex::default(), AtomicU32::new(0));
        let counts = self.counts.worker();
        Denials(Arc::new(WorkerDenials { store, shared, known, lookup_credit, counts }))
    }

    /// Returns how often the caches of all workers answered.
    pub fn stats(&self) -> DenialStats {
        self.counts.sum()
    }

    #[inline]
    fn keeps(&self, decision: &Decision<'_>) -> bool {
        let counts_denied = || decision.strategy.algorithms().iter().any(|limit| limit.counts_denied());
        matches!(decision.op, Op::Charge | Op::Peek) && decision.part.is_none() && !counts_denied()
    }
}

impl<S: Store> Store for Denials<S> {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        if self.0.shared.max_age.is_zero() {
            return self.0.store.decide(decisions, answers);
        }
        for decision in decisions {
            if self.0.shared.keeps(decision) {
                self.0.decide(decision, answers);
            } else {
                self.0.pass(decision, answers);
            }
        }
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        self.0.decide_costs(decision)
    }

    fn patience(&self) -> Option<Duration> {
        self.0.store.patience()
    }

    fn knows_some(&self) -> bool {
        self.0.lookup_credit.load(Relaxed) > 0
    }

    fn known(&self, decisions: &[Decision<'_>], answers: &mut Answers) -> SmallVec<[usize; TOGETHER]> {
        let WorkerDenials { shared, known, .. } = &*self.0;
        let (now, table) = (shared.clock.now(), known.lock());
        let mut places = SmallVec::new();
        for (place, decision) in decisions.iter().enumerate() {
            let answer = match *decision.costs {
                [cost] if cost > 0 && shared.keeps(decision) => {
                    let epochs = shared.epochs(decision);
                    let question = epochs.question(decision.strategy.id(), cost);
                    let answer = table.answer(&question, epochs.sum(shared), now);
                    self.0.add_credit(if answer.is_some() { HIT_CREDIT } else { MISS_CREDIT });
                    answer.and_then(|answer| Some((answer.verdict()?, answer)))
                }
                _ => None,
            };
            if let Some((verdict, answer)) = answer {
                answers.each.push(StoreAnswer::Ready(Ok(verdict)));
                answers.limits.extend(answer.limits());
                self.0.counts.hit();
                places.push(place);
            }
        }
        places
    }
}

/// The question sent to the store, to cache its answer later.
struct StoreQuestion {
    strategy: Arc<Strategy>,
    op: Op,
    costs: SmallVec<[u64; 2]>,
    epochs: Epochs,
    /// The sum of the epochs before the store was asked.
    epoch: u64,
    sent: Instant,
}

impl<S: Store> WorkerDenials<S> {
    /// Passes on a decision that is not cached, but may change a state.
    fn pass(self: &Arc<Self>, decision: &Decision<'_>, answers: &mut Answers) {
        let epochs = self.shared.epochs(decision);
        // A cost of 0 changes nothing, but resets and cancellations have no cost at all.
        let charges = decision.op != Op::Peek && decision.costs.iter().any(|&cost| cost > 0);
        let changes = matches!(decision.op, Op::Reset | Op::Cancel) || charges;
        let change = changes.then(|| StateChange::of_tag(&self.shared, epochs));
        let end = answers.end();
        self.store.decide(slice::from_ref(decision), answers);
        let this = Arc::clone(self);
        let after = move |verdicts: &Verdicts| {
            epochs.saw(&this.shared, verdicts, false);
            drop(change);
        };
        let judged = then(answers.take_from(end), after);
        answers.put(decision.costs.len(), judged);
    }

    /// Answers from the cache, or asks the store and caches denials.
    fn decide(self: &Arc<Self>, decision: &Decision<'_>, answers: &mut Answers) {
        let epochs = self.shared.epochs(decision);
        let mut asked = StoreQuestion {
            strategy: Arc::clone(decision.strategy),
            op: decision.op,
            costs: decision.costs.into(),
            epochs,
            epoch: epochs.sum(&self.shared),
            sent: self.shared.clock.now(),
        };
        if self.knows_all(&asked, answers) {
            return self.counts.hit();
        }
        self.counts.missed();
        let change = asked.takes().then(|| StateChange::of_keys(&self.shared, epochs));
        let end = answers.end();
        self.store.decide(slice::from_ref(decision), answers);
        let this = Arc::clone(self);
        let after = move |verdicts: &Verdicts| this.learn_from(&mut asked, change, verdicts);
        let judged = then(answers.take_from(end), after);
        answers.put(decision.costs.len(), judged);
    }

    fn learn_from(&self, asked: &mut StoreQuestion, change: Option<StateChange>, verdicts: &Verdicts) {
        // Of several costs, only those after the last admitted one are denied by the current state.
        let mut costs = verdicts.decisions.iter().zip(&asked.costs);
        let last = costs.rposition(|(one, &cost)| one.allowed && cost > 0).filter(|_| asked.takes());
        // An admitted charge raises the epoch below. A denied one changed nothing.
        change.into_iter().for_each(StateChange::forget);
        if asked.epochs.saw(&self.shared, verdicts, last.is_some()) {
            asked.epoch = asked.epoch.wrapping_add(asked.epochs.step());
        }
        let first = last.map_or(0, |last| last + 1);
        self.learn(asked, first, verdicts);
    }
}

impl StoreQuestion {
    fn question(&self, cost: u64) -> KnownQuestion {
        self.epochs.question(self.strategy.id(), cost)
    }

    /// True if it may charge the limits.
    fn takes(&self) -> bool {
        self.op == Op::Charge && self.costs.iter().any(|&cost| cost > 0)
    }
}

impl<S> WorkerDenials<S> {
    /// The cache belongs to one worker, so a lost update does no harm.
    fn add_credit(&self, credit: i32) {
        let sum = self.lookup_credit.load(Relaxed).saturating_add_signed(credit);
        self.lookup_credit.store(sum.min(MAX_LOOKUP_CREDIT), Relaxed);
    }

    /// Answers all costs if each has a cached denial: no denial changes the answer to the next one.
    fn knows_all(&self, asked: &StoreQuestion, answers: &mut Answers) -> bool {
        let known = self.known.lock();
        let answer = |&cost: &u64| known.answer(&asked.question(cost), asked.epoch, asked.sent);
        if asked.costs.is_empty() || !asked.costs.iter().all(|cost| answer(cost).is_some()) {
            return false;
        }
        for answer in asked.costs.iter().filter_map(answer) {
            answers.each.extend(answer.verdict().map(|verdict| StoreAnswer::Ready(Ok(verdict))));
            answers.limits.extend(answer.limits());
        }
        self.add_credit(HIT_CREDIT);
        true
    }

    /// Caches the denials of the costs from `first` on, each for as long as it holds.
    fn learn(&self, asked: &StoreQuestion, first: usize, answers: &Verdicts) {
        let mut received = None;
        for (index, &cost) in asked.costs.iter().enumerate().skip(first) {
            // Equal costs have equal answers, so one entry is enough.
            let again = asked.costs.get(index + 1) == Some(&cost);
            let denied = answers.get(index).filter(|(verdict, _)| !verdict.allowed && !again);
            let Some((&verdict, limits)) = denied else { continue };
            let holds = holds(&asked.strategy, limits, cost).min(self.shared.max_age);
            let received = *received.get_or_insert_with(|| self.shared.clock.now());
            let answer =
                Verdicts { decisions: [verdict].into(), limits: limits.into(), ..Verdicts::default() };
            let known = Known { epoch: asked.epoch, received, until: asked.sent + holds, answer };
            if known.until > received {
                self.known.lock().keep(asked.question(cost), known);
                self.add_credit(INSERT_CREDIT);
            }
        }
    }
}
