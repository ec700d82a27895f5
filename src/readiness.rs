//! Whether this node can decide: one handle, told by whoever knows, read by everybody who is asked.
//!
//! ```text
//!   NotReady(reason) ⇄ Ready        the store's prober, or the memory store at once
//!          └────┬──────┘
//!            Draining               SIGTERM: calls are served, but belong elsewhere
//!               │
//!             Closing               connections end; there is no way back
//! ```

use std::sync::Arc;

use tokio::sync::watch;

/// Whether decisions can be made. Clones share the state.
#[derive(Debug, Clone)]
pub struct Readiness(Arc<watch::Sender<State>>);

/// What a node says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Decisions would fail, and why.
    NotReady(Arc<str>),
    /// Decisions are made.
    Ready,
    /// The node is going away: calls are still served, but new ones belong elsewhere.
    Draining,
    /// The node takes no new connections: calls in flight finish.
    Closing,
}

impl Readiness {
    /// A node that is still starting.
    #[must_use]
    pub fn starting() -> Self {
        Self(Arc::new(watch::Sender::new(State::NotReady("starting".into()))))
    }

    /// Says whether decisions can be made, and if not, why. A node that drains stays so.
    pub fn set(&self, ready: Result<(), String>) {
        let next = match ready {
            Ok(()) => State::Ready,
            Err(reason) => State::NotReady(reason.into()),
        };
        self.change(next);
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
        self.0.borrow().clone()
    }

    /// The state now and every later one.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.0.subscribe()
    }

    fn change(&self, next: State) {
        self.0.send_if_modified(|state| {
            let changes = match *state {
                State::NotReady(_) | State::Ready => *state != next,
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
        let readiness = Readiness::starting();
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
    fn saying_the_same_again_is_no_change() {
        let readiness = Readiness::starting();
        readiness.set(Ok(()));
        let mut states = readiness.subscribe();
        states.mark_unchanged();
        readiness.set(Ok(()));
        assert!(!states.has_changed().unwrap());
        readiness.drain();
        assert!(states.has_changed().unwrap());
    }
}
