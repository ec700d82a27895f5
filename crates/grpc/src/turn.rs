//! Turns: the bound on the work that one connection does before the other connections of its worker are polled.
//!
//! A turn is measured in decisions, because a call may ask for one or for a thousand, and in time, because a decision may
//! cost much. Services count decisions with [`spend`], which reads the clock once in 32 decisions. A worker is one thread,
//! so the count of the current turn is thread-local. A connection keeps its count from poll to poll: a new turn begins
//! only after all other ready connections have been polled. Outside a connection of this crate (another server, a test of
//! a service) there is no turn: nothing is counted, and nothing waits.

use std::cell::Cell;
use std::pin::pin;
use std::task::Context;
use std::time::{Duration, Instant};

use weir_time::clock::monotonic;

/// Decisions per turn.
pub const DECISIONS_PER_TURN: usize = 1000;

/// Time per turn: of eight connections that flood a worker, a ninth one waits for 2 ms.
const TIME_PER_TURN: Duration = Duration::from_micros(250);

/// Decisions between two looks at the clock.
const TIMED: usize = 32;

thread_local! {
    /// Decisions spent in the current turn of this thread; `None` outside a turn.
    static SPENT: Cell<Option<usize>> = const { Cell::new(None) };
    /// The first look at the clock since the turn was resumed.
    static SEEN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Resumes a turn that has spent `spent` decisions.
pub(crate) fn enter(spent: usize) {
    SPENT.set(Some(spent));
    SEEN.set(None);
}

/// Suspends the turn and returns the decisions spent in it.
#[inline]
pub(crate) fn leave() -> usize {
    SPENT.take().unwrap_or_default()
}

/// Adds to the decisions of the current turn.
#[inline]
pub fn spend(decisions: usize) {
    let Some(before) = SPENT.get() else { return };
    let spent = before.saturating_add(decisions);
    SPENT.set(Some(spent));
    if before / TIMED != spent / TIMED {
        look_at_clock();
    }
}

/// Ends the turn if its time is over.
#[inline(never)]
fn look_at_clock() {
    let now = monotonic();
    match SEEN.get() {
        None => SEEN.set(Some(now)),
        Some(seen) if now.saturating_duration_since(seen) >= TIME_PER_TURN => {
            SPENT.set(Some(DECISIONS_PER_TURN));
        }
        Some(_) => {}
    }
}

/// True if the turn is over.
#[inline]
#[must_use]
pub fn is_over() -> bool {
    remaining() == 0
}

/// Returns the decisions that are left in the current turn.
#[inline]
#[must_use]
pub fn remaining() -> usize {
    DECISIONS_PER_TURN.saturating_sub(SPENT.get().unwrap_or_default())
}

/// Waits for the next turn, if this one is over. A connection keeps its count from poll to poll.
pub async fn pause() {
    while is_over() {
        tokio::task::yield_now().await;
    }
}

/// Ends the turn. The task is polled again after the runtime has polled its sockets: an immediate wake would put it
/// ahead of calls that have arrived meanwhile.
pub fn yield_to_others(context: &mut Context<'_>) {
    // The first poll only registers the waker.
    let _ = pin!(tokio::task::yield_now()).poll(context);
}
