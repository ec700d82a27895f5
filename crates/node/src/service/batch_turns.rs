//! Turns of batches on connections that tonic's server serves. Those of weir_grpc have turns of their own.
//!
//! Each call is a task, and the runtime polls its sockets only after many tasks. Without turns, a call of another
//! connection waits for all batches that have arrived.

use std::sync::Arc;

use tokio::sync::Semaphore;
use weir_grpc::turn::DECISIONS_PER_TURN;

/// The turns of one connection. An extension of its requests; clones share it.
#[derive(Debug, Clone)]
pub struct BatchTurns(Arc<Semaphore>);

impl Default for BatchTurns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(DECISIONS_PER_TURN)))
    }
}

impl BatchTurns {
    /// Calls `decide` when so many decisions are left in the turn. They are given back after the runtime has polled
    /// its sockets, so that calls that have arrived meanwhile go first.
    pub(super) async fn take<T>(&self, decisions: usize, decide: impl FnOnce() -> T) -> T {
        let decisions = u32::try_from(decisions.min(DECISIONS_PER_TURN)).unwrap_or(u32::MAX);
        // It is never closed.
        let turn = self.0.acquire_many(decisions).await;
        let decided = decide();
        tokio::task::yield_now().await;
        drop(turn);
        decided
    }
}
