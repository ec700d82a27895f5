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
//! Strategies that count denied attempts are passed through: there a denial changes the state.

mod known;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::known::{Known, Table};
use super::{Decision, Store, StoreError, Verdicts};
use crate::algorithm::Op;
use crate::clock::Monotonic;
use crate::key::{self, KeySecret};
use crate::units::{Micros, Retry};

/// One worker's denials in front of its store.
pub struct Denials<S> {
    store: S,
    shared: DenialsShared,
    known: Mutex<Table>,
}

/// What the denials of all workers of a node share.
#[derive(Clone)]
pub struct DenialsShared {
    epochs: Arc<[AtomicU64]>,
    secret: KeySecret,
    clock: Monotonic,
    max_age: Duration,
}

/// Tags that share an epoch hide one another's denials now and then, and nothing else.
const EPOCHS: usize = 1024;

/// A decision that may be known, and the epoch of its tag.
struct Question<'a> {
    key: u128,
    cost: u64,
    epoch: &'a AtomicU64,
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
        Denials { store, shared: self.clone(), known: Mutex::default() }
    }

    fn epoch(&self, decision: &Decision<'_>) -> &AtomicU64 {
        let mut tag = Vec::with_capacity(64);
        key::write_tag(&mut tag, decision.strategy, &decision.subject);
        &self.epochs[self.secret.hash(&tag) as usize % EPOCHS]
    }

    /// The question, if its answer may be kept at all.
    fn question(&self, decision: &Decision<'_>, op: Op, costs: &[u64]) -> Option<Question<'_>> {
        let counts_denied = || decision.strategy.algorithms().iter().any(|limit| limit.counts_denied());
        let [cost @ 1..=u64::MAX] = *costs else { return None };
        if self.max_age.is_zero() || !matches!(op, Op::Charge | Op::Peek) || counts_denied() {
            return None;
        }
        let mut text = Vec::with_capacity(160);
        for limit in decision.strategy.limits() {
            key::write_name(&mut text, decision.strategy, limit, &decision.subject);
            text.push(b'\n');
        }
        text.extend_from_slice(&cost.to_le_bytes());
        // An override has its strategy's names, and so its keys, but other numbers.
        text.extend_from_slice(&(Arc::as_ptr(decision.strategy) as usize).to_le_bytes());
        Some(Question { key: self.secret.hash(&text), cost, epoch: self.epoch(decision) })
    }
}

impl<S: Store> Store for Denials<S> {
    async fn decide(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> Result<(), StoreError> {
        let Some(question) = self.shared.question(decision, op, costs) else {
            let result = self.store.decide(decision, op, costs, out).await;
            if matches!(op, Op::Refund | Op::Reset) {
                // Also on an error: it may have been executed. Before the caller hears of it.
                self.shared.epoch(decision).fetch_add(1, SeqCst);
            }
            return result;
        };
        let sent = self.shared.clock.now();
        let epoch = question.epoch.load(SeqCst);
        if let Some(answer) = self.known.lock().answer(question.key, epoch, question.cost, sent) {
            *out = answer;
            return Ok(());
        }
        self.store.decide(decision, op, costs, out).await?;
        self.learn(&question, epoch, sent, out);
        Ok(())
    }
}

impl<S> Denials<S> {
    /// Keeps a denial, for as long as it holds.
    fn learn(&self, question: &Question<'_>, epoch: u64, sent: Instant, answer: &Verdicts) {
        let [verdict] = answer.decisions.as_slice() else { return };
        if verdict.allowed {
            return;
        }
        let wait = answer.limits.iter().fold(Retry::Now, |longest, one| longest.max(one.retry));
        let holds = match wait {
            Retry::Now => return,
            Retry::After(wait) => Duration::from(wait).min(self.shared.max_age),
            Retry::Never => self.shared.max_age,
        };
        let received = self.shared.clock.now();
        let known = Known { epoch, received, until: sent + holds, answer: answer.clone() };
        if known.until > received {
            self.known.lock().keep(question.key, known);
        }
    }
}
