//! The progress of a run, and the switch that ends it early.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::tally::Counts;

/// Handle of a run: progress, and a switch to stop it.
#[derive(Debug, Default)]
pub struct RunWatch {
    decisions: AtomicU64,
    allowed: AtomicU64,
    failed: AtomicU64,
    stopped: AtomicBool,
}

/// Progress of a run, without the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// Decisions so far.
    pub decisions: u64,
    /// Allowed ones among them.
    pub allowed: u64,
    /// Requests that failed.
    pub failed: u64,
}

impl RunWatch {
    /// Current progress.
    #[must_use]
    pub fn progress(&self) -> RunProgress {
        RunProgress {
            decisions: self.decisions.load(Relaxed),
            allowed: self.allowed.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }

    /// Ends the run early: no further calls are made, and pending ones are awaited.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Adds a thread's increment.
    pub(super) fn add(&self, before: &Counts, now: &Counts) {
        self.decisions.fetch_add(now.decisions() - before.decisions(), Relaxed);
        self.allowed.fetch_add(now.allowed - before.allowed, Relaxed);
        self.failed.fetch_add(now.failed - before.failed, Relaxed);
    }
}
