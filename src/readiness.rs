//! Whether this node can decide: one handle, told by whoever knows, read by everybody who is asked.
//!
//! ```text
//!   NotReady(reason) ⇄ Ready ⇄ Degraded(outage)     the store's prober, or the memory store at once
//!          └────┬──────┴──────────────┘
//!            Draining               SIGTERM: calls are served, but belong elsewhere
//!               │
//!             Closing               connections end; there is no way back
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::clock::monotonic;

/// Whether decisions can be made. Clones share the state.
#[derive(Debug, Clone)]
pub struct Readiness {
    state: Arc<watch::Sender<State>>,
    /// Whether a node whose store is away is not ready.
    needs_store: bool,
}

/// What a node says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Decisions would fail, and why.
    NotReady(Arc<str>),
    /// Decisions are made.
    Ready,
    /// The store is away, and the failure policy of each strategy answers.
    Degraded(Outage),
    /// The node is going away: calls are still served, but new ones belong elsewhere.
    Draining,
    /// The node takes no new connections: calls in flight finish.
    Closing,
}

/// An outage of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    since: Instant,
    reason: Arc<str>,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = monotonic().saturating_duration_since(self.since).as_secs();
        write!(
            f,
            "the store has been away for {seconds} s ({reason}); on_store_failure answers until it is back: check \
             that Redis runs, can be reached from here, and lets this user in",
            reason = self.reason
        )
    }
}

impl Readiness {
    /// A node that is still starting. If it does not need its store, it is ready without.
    #[must_use]
    pub fn starting(needs_store: bool) -> Self {
        Self { state: Arc::new(watch::Sender::new(State::NotReady("starting".into()))), needs_store }
    }

    /// Says whether the store can decide, and if not, why. A node that drains stays so.
    pub fn set(&self, ready: Result<(), String>) {
        self.change(match ready {
            Ok(()) => State::Ready,
            Err(reason) if self.needs_store => State::NotReady(reason.into()),
            Err(reason) => {
                let since = match self.state() {
                    State::Degraded(outage) => outage.since,
                    _ => monotonic(),
                };
                State::Degraded(Outage { since, reason: reason.into() })
            }
        });
    }

    /// Says that the node is going away.
    pub fn drain(&self) {
        self.change(State::Draining);
    }

    /// Says that the node takes no new connections.
    pub fn close(&self) {
        self.change(State::Closing);
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// The state now and every later one.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    fn change(&self, next: State) {
        self.state.send_if_modified(|state| {
            let changes = match *state {
                State::NotReady(_) | State::Ready | State::Degraded(_) => *state != next,
                State::Draining => next == State::Closing,
                State::Closing => false,
            };
            if changes {
                *state = next;
            }
            changes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_way_back_from_draining() {
        let readiness = Readiness::starting(true);
        readiness.set(Err("redis is away".to_owned()));
        assert_eq!(readiness.state(), State::NotReady("redis is away".into()));
        readiness.set(Ok(()));
        assert_eq!(readiness.state(), State::Ready);
        readiness.drain();
        readiness.set(Ok(()));
        assert_eq!(readiness.state(), State::Draining);
        readiness.close();
        readiness.drain();
        assert_eq!(readiness.state(), State::Closing);
    }

    #[test]
    fn who_does_not_need_a_store_is_degraded_without_it() {
        let readiness = Readiness::starting(false);
        assert_eq!(readiness.state(), State::NotReady("starting".into()));
        readiness.set(Err("redis is away".to_owned()));
        let State::Degraded(first) = readiness.state() else { panic!("{:?}", readiness.state()) };
        readiness.set(Err("redis has no route".to_owned()));
        let State::Degraded(second) = readiness.state() else { panic!("{:?}", readiness.state()) };
        assert_eq!((&*second.reason, second.since), ("redis has no route", first.since), "it is one outage");
        readiness.set(Ok(()));
        assert_eq!(readiness.state(), State::Ready);
    }

    #[test]
    fn saying_the_same_again_is_no_change() {
        let readiness = Readiness::starting(true);
        readiness.set(Ok(()));
        let mut states = readiness.subscribe();
        states.mark_unchanged();
        readiness.set(Ok(()));
        assert!(!states.has_changed().unwrap());
        readiness.drain();
        assert!(states.has_changed().unwrap());
    }
}
