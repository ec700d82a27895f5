//! Answers that are known until they change: what was denied stays denied until its wait is over.
//!
//! Without a refund or a reset a limit's state can only get worse, so the same decision (the same
//! strategy, keys and cost) need not be asked again before its `retry_after`. Under an attack the store
//! then hears of each key once per wait instead of once per call.
//!
//! ```text
//!   sent ──────── received                                     until = sent + wait
//!     │  the store decides  │  answered here, its waits aged      │  the store is asked again
//!     └─────────────────────┴─────────────────────────────────────┘
//! ```
//!
//! The store decided somewhere between sent and received. An entry ends counted from *sent*, so that
//! nobody is denied who would have been admitted; its `retry_after` is counted from *received*, so that
//! nobody who waits is denied twice. It ends at the latest after `max_age`: that is how long another
//! node's refund, or a server clock that jumped, can stay unseen.
//!
//! What is taken or given back on this node, by any worker, ends it at once: the answer would still be
//! no, but what it says of what remains would be old. So does whoever is told of a state that is new, for
//! a change is executed, and may be seen, before its own caller hears of it. Where more may remain before
//! the cost is admitted, as in a bucket that lacks several tokens, a denial is kept for some milliseconds
//! only. What another node takes is not seen here. It can take something only where a cost of 1 would be admitted, so
//! that a denial is cached until then at most (`holds.rs`).
//!
//! Those who were denied together, in one call of several costs, are known as well, from the last one on that was
//! admitted: so a key of which every millisecond one passes is asked for once or twice in that time, and not for
//! each of those who wait for it (`coalesce.rs`, which stands before this).
//!
//! Strategies that count denied attempts are passed through: there a denial changes the state.

mod epochs;
mod holds;
mod known;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::epochs::{Changes, EPOCHS, Epochs, LastSeenStates, TOLD, UnderWay};
use self::holds::holds;
use self::known::{DenialTable, Known, Question};
use super::{AreKnown, Decision, Ended, Part, Single, Store, StoreError, Verdicts};
use weir_core::algorithm::Op;
use weir_core::key::KeySecret;
use weir_time::clock::Monotonic;
use weir_units::Micros;

/// One worker's denials in front of its store.
pub struct Denials<S> {
    store: S,
    shared: DenialsShared,
    known: Mutex<DenialTable>,
    /// How much it is worth to look before a call is begun: as long as one in nine is found.
    worth: AtomicU32,
}

/// What a look that finds something is worth, in looks that do not; one that there is something to look for;
/// and the most that is put by.
const FOUND: i32 = 8;
const LEARNED: i32 = 1;
const NOT_FOUND: i32 = -1;
const MOST_WORTH: u32 = 1024;

/// What the denials of all workers of a node share.
#[derive(Clone)]
pub struct DenialsShared {
    /// Raised by whatever changes a state: for each tag, and for each set of keys.
    epochs: Arc<[AtomicU64]>,
    /// For each tag, how many changes of it are under way.
    under_way: Arc<[AtomicU64]>,
    /// The state that the last answer for each set of keys showed.
    told: Arc<[Mutex<LastSeenStates>]>,
    secret: KeySecret,
    clock: Monotonic,
    max_age: Duration,
}

impl DenialsShared {
    /// Denials are kept for at most `max_age`; with none, every decision goes to the store.
    #[must_use]
    pub fn new(max_age: Micros, clock: Monotonic) -> Self {
        let counters = || (0..EPOCHS).map(|_| AtomicU64::new(0)).collect();
        let (epochs, under_way) = (counters(), counters());
        let told = (0..TOLD).map(|_| Mutex::default()).collect();
        Self { epochs, under_way, told, secret: KeySecret::random(), clock, max_age: max_age.into() }
    }

    /// One worker's denials, in front of `store`.
    #[must_use]
    pub fn before<S: Store>(&self, store: S) -> Denials<S> {
        Denials { store, shared: self.clone(), known: Mutex::default(), worth: AtomicU32::new(0) }
    }

    /// Whether denials of such decisions are kept.
    fn keeps(&self, decision: &Decision<'_>, op: Op) -> bool {
        let counts_denied = || decision.strategy.algorithms().iter().any(|limit| limit.counts_denied());
        matches!(op, Op::Charge | Op::Peek) && decision.part == Part::ALL && !counts_denied()
    }
}

impl<S: Store> Store for Denials<S> {
    fn knows_some(&self) -> bool {
        self.worth.load(Relaxed) > 0
    }

    fn known_each(&self, singles: &[Single<'_>], known: &mut AreKnown, out: &mut Ended) {
        let (now, table) = (self.shared.clock.now(), self.known.lock());
        known.extend(singles.iter().map(|single| {
            let decision = single.decision();
            if single.cost == 0 || !self.shared.keeps(&decision, single.op()) {
                return false;
            }
            let epochs = self.shared.epochs(&decision);
            let answer = table.answer(&epochs.question(&decision, single.cost), epochs.sum(), now);
            self.looked(if answer.is_some() { FOUND } else { NOT_FOUND });
            let Some((verdict, answer)) = answer.and_then(|answer| Some((answer.verdict()?, answer))) else {
                return false;
            };
            out.decisions.push(Ok(verdict));
            out.limits.extend(answer.limits());
            true
        }));
    }

    async fn decide(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> Result<(), StoreError> {
        if self.shared.max_age.is_zero() {
            return self.store.decide(decision, op, costs, out).await;
        }
        let epochs = self.shared.epochs(decision);
        if !self.shared.keeps(decision, op) {
            // A cost of nothing changes nothing, but a reset has no cost at all.
            let changes = op == Op::Reset || op != Op::Peek && costs.iter().any(|&cost| cost > 0);
            // It ends after its epoch has been raised.
            let _under_way = UnderWay::of(&epochs, changes);
            let _changes = Changes(changes.then_some(epochs.tag));
            self.store.decide(decision, op, costs, out).await?;
            epochs.told(out, false);
            return Ok(());
        }
        let (sent, epoch) = (self.shared.clock.now(), epochs.sum());
        let mut asked = StoreQuestion { decision, costs, epochs, epoch, sent };
        if self.knows_all(&asked, out) {
            return Ok(());
        }
        let takes = op == Op::Charge && costs.iter().any(|&cost| cost > 0);
        let mut changes = Changes(takes.then_some(asked.epochs.keys));
        self.store.decide(decision, op, costs, out).await?;
        // Of several costs those are denied by the state as it is now that come after the last admitted one.
        let admitted = out.decisions.iter().zip(costs).rposition(|(one, &cost)| one.allowed && cost > 0);
        let last = admitted.filter(|_| takes);
        changes.0 = None;
        if asked.epochs.told(out, last.is_some()) {
            asked.epoch = epoch.wrapping_add(asked.epochs.step());
        }
        let first = last.map_or(0, |last| last + 1);
        self.learn(&asked, first, out);
        Ok(())
    }
}

/// What the store is asked, and when.
struct StoreQuestion<'a, 'd> {
    decision: &'a Decision<'d>,
    costs: &'a [u64],
    epochs: Epochs<'a>,
    /// What it knew of: the sum of the epochs.
    epoch: u64,
    sent: Instant,
}

impl StoreQuestion<'_, '_> {
    fn question(&self, cost: u64) -> Question {
        self.epochs.question(self.decision, cost)
    }
}

impl<S> Denials<S> {
    /// A worker's own count: what two threads would lose of it is no matter.
    fn looked(&self, worth: i32) {
        let sum = self.worth.load(Relaxed).saturating_add_signed(worth);
        self.worth.store(sum.min(MOST_WORTH), Relaxed);
    }

    /// Answers all costs, if each is known to be denied: no denial changes the answer to the next one.
    fn knows_all(&self, asked: &StoreQuestion<'_, '_>, out: &mut Verdicts) -> bool {
        let known = self.known.lock();
        let answer = |&cost: &u64| known.answer(&asked.question(cost), asked.epoch, asked.sent);
        if asked.costs.is_empty() || !asked.costs.iter().all(|cost| answer(cost).is_some()) {
            return false;
        }
        for answer in asked.costs.iter().filter_map(answer) {
            out.decisions.extend(answer.verdict());
            out.limits.extend(answer.limits());
        }
        self.looked(FOUND);
        true
    }

    /// Keeps the denials of the costs from `first` on, each for as long as it holds.
    fn learn(&self, asked: &StoreQuestion<'_, '_>, first: usize, answers: &Verdicts) {
        let mut received = None;
        for (index, &cost) in asked.costs.iter().enumerate().skip(first) {
            // All say the same that ask for the same.
            let again = asked.costs.get(index + 1) == Some(&cost);
            let denied = answers.get(index).filter(|(verdict, _)| !verdict.allowed && !again);
            let Some((&verdict, limits)) = denied else { continue };
            let holds = holds(asked.decision.strategy, limits, cost).min(self.shared.max_age);
            let received = *received.get_or_insert_with(|| self.shared.clock.now());
            let answer = Verdicts { decisions: [verdict].into(), limits: limits.into() };
            let known = Known { epoch: asked.epoch, received, until: asked.sent + holds, answer };
            if known.until > received {
                self.known.lock().keep(asked.question(cost), known);
                self.looked(LEARNED);
            }
        }
    }
}
