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
//! nobody is denied who would have been admitted; the wait it tells is counted from *received*, so that
//! nobody who waits is denied twice. It ends at the latest after `max_age`: that is how long another
//! node's refund, or a server clock that jumped, can stay unseen.
//!
//! What is taken or given back on this node, by any worker, ends it at once: the answer would still be no,
//! but what it says of what remains would be old. Where more may remain before the cost is admitted, as in a
//! bucket that lacks several tokens, a denial is kept for some milliseconds only.
//!
//! Strategies that count denied attempts are passed through: there a denial changes the state.

mod known;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::known::{Known, Question, Table};
use super::{AreKnown, Decision, Ended, Part, Single, Store, StoreError, Verdicts};
use crate::algorithm::{Algorithm, Engine, LimitVerdict, Op};
use crate::clock::Monotonic;
use crate::key::{self, KeySecret};
use crate::strategy::Field;
use crate::units::{Micros, Retry};

thread_local! {
    /// What a tag is the hash of is built here, hashed, and forgotten.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One worker's denials in front of its store.
pub struct Denials<S> {
    store: S,
    shared: DenialsShared,
    known: Mutex<Table>,
    /// How much it is worth to look before a call is begun: as long as one in nine is found.
    worth: AtomicU32,
}

/// What a look that finds something is worth, in looks that do not; and the most that is put by.
const FOUND: u32 = 8;
const MOST_WORTH: u32 = 1024;

/// What the denials of all workers of a node share.
#[derive(Clone)]
pub struct DenialsShared {
    /// Raised by whatever changes a state: for each tag, and for each set of keys.
    epochs: Arc<[AtomicU64]>,
    secret: KeySecret,
    clock: Monotonic,
    max_age: Duration,
}

/// Those that share an epoch end one another's denials now and then, and nothing else.
const EPOCHS: usize = 4096;

/// How long a denial is kept whose limits may have more to give before they admit it: what remains is told
/// as it was, and this is about as old as any answer is that came from afar.
const BLUR: Duration = Duration::from_millis(10);
/// Nor is it kept for more than this part of the time that its limits take to be fresh.
const BLUR_PART: u32 = 16;

/// What may change under a decision: its tag, which refunds and the like raise, and its keys, which charges
/// do. Where other decisions share some of its counters only, both are the tag's.
struct Epochs<'a> {
    tag: &'a AtomicU64,
    keys: &'a AtomicU64,
    /// The hash of the fields of its keys.
    fields: u128,
}

impl Epochs<'_> {
    /// An override has its strategy's keys, but other numbers; and so has the same strategy of a configuration
    /// that has changed. Each has a number of its own, which is never used again.
    fn question(&self, decision: &Decision<'_>, cost: u64) -> Question {
        Question { fields: self.fields, strategy: decision.strategy.id(), cost }
    }

    /// Neither of them is ever lowered, so that the sum tells whether one has been raised.
    fn sum(&self) -> u64 {
        self.tag.load(SeqCst).wrapping_add(self.keys.load(SeqCst))
    }
}

/// Something that may change a state, and raises its epoch when it has ended, before its caller hears of it.
/// However it ends: after an error it may have been executed, and after a caller that has gone as well.
struct Changes<'a>(Option<&'a AtomicU64>);

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        if let Some(epoch) = self.0 {
            epoch.fetch_add(1, SeqCst);
        }
    }
}

impl DenialsShared {
    /// Denials are kept for at most `max_age`; with none, every decision goes to the store.
    #[must_use]
    pub fn new(max_age: Micros, clock: Monotonic) -> Self {
        let epochs = (0..EPOCHS).map(|_| AtomicU64::new(0)).collect();
        Self { epochs, secret: KeySecret::random(), clock, max_age: max_age.into() }
    }

    /// One worker's denials, in front of `store`.
    #[must_use]
    pub fn before<S: Store>(&self, store: S) -> Denials<S> {
        Denials { store, shared: self.clone(), known: Mutex::default(), worth: AtomicU32::new(0) }
    }

    fn epochs(&self, decision: &Decision<'_>) -> Epochs<'_> {
        let Decision { strategy, ref subject, .. } = *decision;
        let named = TEXT.with_borrow_mut(|text| {
            text.clear();
            key::write_tag(text, strategy, subject);
            self.secret.digest(text)
        });
        let epoch = |hash: u64| &self.epochs[hash as usize % EPOCHS];
        let tag = epoch(named as u64);
        // Of a strategy and its overrides, which have keys in common.
        let family = strategy.family() as u64;
        // Mostly the tag is made of all fields, and its hash tells them apart too. The hashes of others are
        // turned over: no text has the same hash in both ways.
        let by_group = subject.group.is_some() && strategy.fields().has(Field::Resource);
        let is_whole = strategy.tag_is_whole() && !by_group;
        let fields = if is_whole { named } else { !self.secret.hash_fields(family, strategy, subject) };
        let of_keys = ((fields >> 64) as u64).wrapping_add(family);
        let keys = if strategy.shares_counters() { tag } else { epoch(of_keys) };
        Epochs { tag, keys, fields }
    }

    /// The cost whose answer may be kept, if there is one.
    fn cost(&self, decision: &Decision<'_>, op: Op, costs: &[u64]) -> Option<u64> {
        let counts_denied = || decision.strategy.algorithms().iter().any(|limit| limit.counts_denied());
        let [cost @ 1..=u64::MAX] = *costs else { return None };
        let whole = decision.part == Part::ALL;
        (whole && matches!(op, Op::Charge | Op::Peek) && !counts_denied()).then_some(cost)
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
            let Some(cost) = self.shared.cost(&decision, single.op(), &[single.cost]) else { return false };
            let epochs = self.shared.epochs(&decision);
            let answer = table.answer(&epochs.question(&decision, cost), epochs.sum(), now);
            self.looked(answer.is_some());
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
        let Some(cost) = self.shared.cost(decision, op, costs) else {
            // A cost of nothing changes nothing, but a reset has no cost at all.
            let changes = op == Op::Reset || op != Op::Peek && costs.iter().any(|&cost| cost > 0);
            let _changes = Changes(changes.then_some(epochs.tag));
            return self.store.decide(decision, op, costs, out).await;
        };
        let question = epochs.question(decision, cost);
        let (sent, epoch) = (self.shared.clock.now(), epochs.sum());
        if let Some(answer) = self.known.lock().answer(&question, epoch, sent) {
            self.looked(true);
            out.decisions.extend(answer.verdict());
            out.limits.extend(answer.limits());
            return Ok(());
        }
        let mut changes = Changes((op == Op::Charge).then_some(epochs.keys));
        let result = self.store.decide(decision, op, costs, out).await;
        if result.is_ok() && out.decisions.first().is_some_and(|verdict| !verdict.allowed) {
            changes.0 = None;
            self.learn(decision, question, epoch, sent, out);
        }
        result
    }
}

impl<S> Denials<S> {
    /// A worker's own count: what two threads would lose of it is no matter.
    fn looked(&self, found: bool) {
        let worth = self.worth.load(Relaxed);
        let worth = if found { (worth + FOUND).min(MOST_WORTH) } else { worth.saturating_sub(1) };
        self.worth.store(worth, Relaxed);
    }

    /// Keeps a denial, for as long as it holds.
    fn learn(
        &self,
        decision: &Decision<'_>,
        question: Question,
        epoch: u64,
        sent: Instant,
        answer: &Verdicts,
    ) {
        let wait = answer.limits.iter().fold(Retry::Now, |longest, one| longest.max(one.retry));
        let holds = match wait {
            Retry::Now => return,
            Retry::After(wait) => Duration::from(wait).min(self.shared.max_age),
            Retry::Never => self.shared.max_age,
        };
        let reset = answer.limits.iter().map(|one| one.reset_after).min().unwrap_or_default();
        let blur = || BLUR.min(Duration::from(reset) / BLUR_PART);
        let limits = decision.strategy.algorithms().iter().zip(&answer.limits);
        let holds = limits.fold(holds, |holds, (limit, says)| match stands(limit, says, question.cost) {
            Stands::Always => holds,
            Stands::For(time) => holds.min(time.into()),
            Stands::Unknown => holds.min(blur()),
        });
        let received = self.shared.clock.now();
        let known = Known { epoch, received, until: sent + holds, answer: answer.clone() };
        if known.until > received {
            self.known.lock().keep(question, known);
        }
    }
}

/// How long what remains stays as it is, but for what a wait that is over tells.
enum Stands {
    /// As long as the decision is denied.
    Always,
    For(Micros),
    Unknown,
}

/// Other limits may deny for longer than this one does.
fn stands(limit: &Algorithm, says: &LimitVerdict, cost: u64) -> Stands {
    if says.remaining == limit.limit() {
        return Stands::Always;
    }
    match (limit.engine(), says.retry) {
        (Engine::Window(_), _) => Stands::For(says.reset_after),
        // More may remain long before the gap is over.
        (Engine::Log(log), _) if log.min_gap > 0 => Stands::Unknown,
        (_, Retry::After(wait)) if says.remaining.checked_add(1) == Some(cost) => {
            // No more than all of a limit ever remains.
            if cost == limit.limit() { Stands::Always } else { Stands::For(wait) }
        }
        _ => Stands::Unknown,
    }
}
