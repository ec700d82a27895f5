//! The current snapshot of the configuration, and the workers that follow it.
//!
//! A reload makes a new snapshot and gives it to each worker. A round reads its worker's one by one atomic load.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::service::Snapshot;

/// A worker's part: it serves the snapshot from now on, and returns false once the worker has ended.
pub(crate) type Follower = Box<dyn FnMut(&Snapshot) -> bool + Send>;

/// The current snapshot.
pub struct LiveSnapshot {
    state: Mutex<LiveState>,
}

struct LiveState {
    snapshot: Snapshot,
    followers: Vec<Follower>,
}

impl LiveSnapshot {
    /// Begins with the snapshot of the configuration at the start.
    pub fn new(snapshot: Snapshot) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(LiveState { snapshot, followers: Vec::new() }) })
    }

    /// The current snapshot.
    pub fn current(&self) -> Snapshot {
        self.state.lock().snapshot.clone()
    }

    /// Starts a worker with the current snapshot. Its follower gets all later ones.
    pub(crate) fn join<T>(&self, start: impl FnOnce(&Snapshot) -> (T, Follower)) -> T {
        let mut state = self.state.lock();
        let (started, follower) = start(&state.snapshot);
        state.followers.push(follower);
        started
    }

    /// Calls `follower` with all later snapshots, until it returns false.
    pub(super) fn follow(&self, follower: impl FnMut(&Snapshot) -> bool + Send + 'static) {
        self.state.lock().followers.push(Box::new(follower));
    }

    /// Gives the workers the snapshot that `next` makes of the current one.
    pub fn replace(&self, next: impl FnOnce(&Snapshot) -> Snapshot) {
        let mut state = self.state.lock();
        let LiveState { snapshot, followers } = &mut *state;
        *snapshot = next(snapshot);
        followers.retain_mut(|follow| follow(snapshot));
    }
}
