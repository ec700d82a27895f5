//! The seam between a node and the place where its states live. A node is compiled for each [`Backend`], so that a decision
//! makes no virtual call.
//!
//! ```text
//!   node ── worker, decisions ──► Backend ─┬─ memory   this process; it decides at once, and sweeps what has expired
//!        ◄── status, stats ───             └─ redis    nodes, which a monitor probes
//! ```

mod process_states;
mod stats;
mod status;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use weir_core::strategy::Owner;
use weir_units::Micros;

pub use self::process_states::{FeatureStates, KeepStates, ProcessStates, StateOwner};
pub use self::stats::{BackendStats, ConnectionStats, DenialStats, LocalStats, MemoryStats};
pub use self::status::{BackendStatus, NodeStatus, Problem, Since};
use crate::Store;
use crate::scripts::{AskScripts, ScriptClient};

/// Interval of sweeps of expired keys.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Work in the background. It runs until it is dropped.
pub type BackendWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The place where states live. Clones share it.
pub trait Backend: Clone + Send + Sync + 'static {
    /// One worker's access to the states. Clones share it, and its connections.
    type Worker: Clone + Send + Sync + 'static;

    /// One worker's store of rate limits.
    type Decisions: Store;

    /// Opens one worker's access, within the worker's runtime.
    fn worker(&self) -> Self::Worker;

    /// Creates the store of rate limits of a worker with this access.
    fn decisions(&self, worker: &Self::Worker) -> Self::Decisions;

    /// Returns a signal of changes of [`Backend::status`]; `None` if the backend can always decide.
    fn status_changes(&self) -> Option<watch::Receiver<()>> {
        None
    }

    /// Returns the health now.
    fn status(&self) -> BackendStatus {
        BackendStatus::default()
    }

    /// Shares the budget of states among these owners. Called for each snapshot before it is served.
    fn share_among<'o>(&self, _owners: impl Iterator<Item = &'o Owner>) {}

    /// Publishes the node's rules to other nodes, at startup and after each reload of the files.
    fn publish_rules(&self, _rules: RulesDigest) {}

    /// Returns the open files that `workers` accesses need.
    fn open_files(&self, _workers: usize) -> usize {
        0
    }

    /// Returns what features run their scripts over; `None` if the backend has none.
    fn scripts(&self) -> Option<ScriptClient> {
        None
    }

    /// Returns what features run scripts over on the connections of a worker's decisions; `None` if the backend has none.
    fn scripts_of(&self, _worker: &Self::Worker) -> Option<Arc<dyn AskScripts>> {
        None
    }

    /// Returns what features keep states beside its own with, if its states are in this process.
    fn process(&self) -> Option<ProcessStates> {
        None
    }

    /// Returns the numbers of the metrics page.
    fn stats(&self) -> BackendStats {
        BackendStats::default()
    }

    /// Does what the backend needs besides calls: it probes nodes, or drops what has expired. Runs on a thread apart from
    /// the workers.
    fn run(&self) -> BackendWork;
}

/// Digest of the strategies in this node's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesDigest {
    /// The name of this node, which no other process has.
    pub node: String,
    /// A number for each strategy, by its name.
    pub strategies: BTreeMap<String, u64>,
}

/// Decides a part of the decisions in front of the store that decides exactly. Each worker has its own.
///
/// Only counting on the nodes is one so far. It is a trait because a backend must not name what a node puts in front of it.
pub trait StoreLayer<S, C>: Clone + Send + Sync + 'static {
    /// The store with the layer in front of it.
    type Store: Store;

    /// Puts the layer in front of `exact`. The layer's own states are in `states`.
    fn layered(&self, exact: S, states: C) -> Self::Store;
}

/// The clocks of a backend whose states are in this process: features keep theirs beside them.
pub type ProcessClock = Arc<dyn ReadClocks>;

/// Reads the clocks of a backend in this process. A trait, because this module must not name the backend.
pub trait ReadClocks: Send + Sync {
    /// Returns the time of the monotonic clock.
    fn steady(&self) -> Micros;

    /// Returns the time of the wall clock.
    fn wall(&self) -> Micros;
}

/// Sweeps expired keys each second, so that they do not take up the budget. Runs until it is dropped.
pub async fn every_second(sweep: impl Fn()) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sweep();
    }
}
