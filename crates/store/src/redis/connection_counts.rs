//! Counts the connections of a process: those that were opened, and those that have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::backend::ConnectionStats;

/// The counters. Connections are opened rarely, so workers share them.
#[derive(Debug, Clone, Default)]
pub struct ConnectionCounts(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    opened: AtomicU64,
    closed: AtomicU64,
}

/// A connection that is open. It is counted as closed when it is dropped.
pub(super) struct CountedConnection(Arc<Counters>);

impl ConnectionCounts {
    pub(super) fn open(&self) -> Arc<CountedConnection> {
        self.0.opened.fetch_add(1, Relaxed);
        Arc::new(CountedConnection(Arc::clone(&self.0)))
    }

    /// Returns the counts.
    pub fn now(&self) -> ConnectionStats {
        // In this order, so that no more are closed than opened.
        let closed = self.0.closed.load(Relaxed);
        ConnectionStats { opened: self.0.opened.load(Relaxed).max(closed), closed }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Relaxed);
    }
}
