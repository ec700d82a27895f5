//! Turns: the bound on the work that one connection does before the other connections of its worker are polled.
//!
//! A turn is measured in decisions, because a call may ask for one or for a thousand. Services count them with
//! [`spend`]. A worker is one thread, so the count of the current turn is thread-local. A connection keeps its
//! count from poll to poll: a new turn begins only after all other ready connections have been polled. Outside a
//! connection of this crate (another server, a test of a service) there is no turn: nothing is counted, and nothing
//! waits.

use std::cell::Cell;
use std::pin::pin;
use std::task::Context;

/// Decisions per turn.
pub const DECISIONS_PER_TURN: usize = 1000;

thread_local! {
    /// Decisions spent in the current turn of this thread; `None` outside a turn.
    static SPENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Resumes a turn that has spent so many decisions.
pub(crate) fn enter(spent: usize) {
    SPENT.set(Some(spent));
}

/// Suspends the turn and returns the decisions spent in it.
#[inline]
pub(crate) fn leave() -> usize {
    SPENT.take().unwrap_or_default()
}

/// Adds to the decisions of the current turn.
#[inline]
pub fn spend(decisions: usize) {
    SPENT.set(SPENT.get().map(|spent| spent.saturating_add(decisions)));
}

/// Returns the decisions that are left in the current turn.
#[inline]
#[must_use]
pub fn remaining() -> usize {
    DECISIONS_PER_TURN.saturating_sub(SPENT.get().unwrap_or_default())
}

/// True if so many decisions have to wait for the next turn. A turn makes at least one call, however large.
#[inline]
#[must_use]
pub fn exceeds(decisions: usize) -> bool {
    SPENT.get().is_some_and(|spent| spent > 0) && decisions > remaining()
}

/// Waits for a turn with so many decisions left. It ends the current turn, because a connection keeps its count
/// from poll to poll.
pub async fn wait_for(decisions: usize) {
    while exceeds(decisions) {
        spend(DECISIONS_PER_TURN);
        tokio::task::yield_now().await;
    }
}

/// Ends the turn. The task is polled again after the runtime has polled its sockets: an immediate wake would put it
/// ahead of calls that have arrived meanwhile.
pub fn yield_to_others(context: &mut Context<'_>) {
    // The first poll only registers the waker.
    let _ = pin!(tokio::task::yield_now()).poll(context);
}
