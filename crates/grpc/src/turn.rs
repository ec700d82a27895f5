//! Turns: how much one connection may do before the others of its worker go on.
//!
//! A turn is measured in decisions, because a call may ask for one or for a thousand. Services count them with
//! [`spend`]. A worker is one thread, so the count of the current turn is thread-local. A connection keeps its count
//! from poll to poll: it begins a new turn only after all others that were ready have been polled. Outside a connection of
//! this crate (another server, a test of a service) there is no turn: nothing is counted, and nothing waits.

use std::cell::Cell;
use std::pin::pin;
use std::task::Context;

/// Decisions of one turn.
pub const DECISIONS_PER_TURN: usize = 1000;

thread_local! {
    /// Decisions of the turn that this thread is in.
    static SPENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Goes on with a turn that has made so many decisions.
pub(crate) fn enter(spent: usize) {
    SPENT.set(Some(spent));
}

/// Leaves the turn, to go on with it later. How many decisions it has made.
#[inline]
pub(crate) fn leave() -> usize {
    SPENT.take().unwrap_or_default()
}

/// Counts decisions of the current turn.
#[inline]
pub fn spend(decisions: usize) {
    SPENT.set(SPENT.get().map(|spent| spent.saturating_add(decisions)));
}

/// Decisions that the current turn may still make.
#[inline]
#[must_use]
pub fn remaining() -> usize {
    DECISIONS_PER_TURN.saturating_sub(SPENT.get().unwrap_or_default())
}

/// Whether so many decisions belong to the next turn. A turn makes at least one call, however large.
#[inline]
#[must_use]
pub fn exceeds(decisions: usize) -> bool {
    SPENT.get().is_some_and(|spent| spent > 0) && decisions > remaining()
}

/// Waits for a turn that may still make so many decisions. It ends the current turn, because a connection keeps its
/// count from poll to poll.
pub async fn wait_for(decisions: usize) {
    while exceeds(decisions) {
        spend(DECISIONS_PER_TURN);
        tokio::task::yield_now().await;
    }
}

/// Ends the turn: the task is polled again after the runtime has looked at its sockets. Waking it at once would
/// put it before calls that have arrived meanwhile.
pub fn yield_to_others(context: &mut Context<'_>) {
    // The first poll registers the waker; it is never ready.
    let _ = pin!(tokio::task::yield_now()).poll(context);
}
