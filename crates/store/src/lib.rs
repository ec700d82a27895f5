//! Storage of state: one interface, two engines.
//!
//! [`Store`] is the interface. [`memory`] keeps states in this process, [`redis`] in a Redis, a Valkey or a cluster of
//! them. [`coalesce`] and [`denials`] stand in front of Redis and save calls to it; [`approximate`] counts within a bound
//! without asking it, and [`local`] decides while it cannot. [`tls`] loads the certificates for connections to Redis.
//! [`backend`] is the seam between a node and either engine. Over [`scripts`] features keep data that nodes share, such as
//! usage by time.
//!
//! A store knows what a decision is from `weir-core`, and its settings from `weir-config`. It does not know which limits
//! apply to a request, how questions arrive, or in which file its configuration is written.

mod answers;
pub mod approximate;
pub mod backend;
mod budget;
pub mod coalesce;
mod cost;
mod count;
mod decision;
pub mod denials;
mod error;
pub mod local;
pub mod memory;
mod own_authority;
mod part;
pub mod redis;
pub mod scripts;
mod server_verifier;
pub mod tls;

use std::future::Future;
use std::pin::pin;
use std::slice;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;

pub use self::answers::{Answers, LaterVerdicts, StoreAnswer, Verdicts};
pub use self::budget::{BudgetDecision, BudgetOp};
pub use self::count::{CountStore, CounterKey};
pub(crate) use self::decision::Phases;
pub use self::decision::{Decision, Once, OwnedSubject, check_supported};
pub use self::error::{StoreError, no_verdict};
pub use self::part::{LimitSet, Part, REFUND_ID_LASTS};

/// Storage of state. Each answer is one atomic decision over all limits of its tag.
pub trait Store: Send + Sync + 'static {
    /// True if [`Store::decide`] never answers [`StoreAnswer::Later`].
    const AT_ONCE: bool = false;

    /// Appends the answers to `decisions`. Each is decided for itself, those of one tag in their order. More than
    /// [`TOGETHER`] at a time save nothing more.
    ///
    /// After an error nothing is known to be charged: either nothing was, or (after [`StoreError::Timeout`]) the charge
    /// may have happened once and its answer was lost. So a decision is never asked again once its answer was polled.
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers);

    /// Answers a question over limits with costs of their own; the verdicts have [`Verdicts::budget`]. The default is that
    /// of a store without such limits.
    fn decide_costs(&self, _decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        StoreAnswer::Ready(Err(StoreError::Unsupported("costs by limit")))
    }

    /// Returns the timeout of a decision whose caller sets no deadline; `None` for stores that answer at once.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// True if a call of [`Store::known`] is worth its cost.
    fn knows_some(&self) -> bool {
        false
    }

    /// Appends the answers to those of `decisions` that are cached, as [`Store::decide`] would answer them. Returns
    /// the places of these decisions, in order. Changes nothing.
    ///
    /// For stores that wrap others: they look here first. Otherwise a cached denial would cost as much as a waiting
    /// caller (a hash of its keys, and an entry in a map).
    fn known(&self, _decisions: &[Decision<'_>], _answers: &mut Answers) -> SmallVec<[usize; TOGETHER]> {
        SmallVec::new()
    }
}

/// Batch size: the prefetch covers so many decisions at a time.
pub const TOGETHER: usize = 16;

/// Asks `store` for one decision.
pub fn decide_one<S: Store>(store: &S, decision: &Decision<'_>) -> StoreAnswer<Verdicts> {
    let mut answers = Answers::default();
    store.decide(slice::from_ref(decision), &mut answers);
    answers.take_from((0, 0))
}

/// The output of `future` if it is ready at its first poll.
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
