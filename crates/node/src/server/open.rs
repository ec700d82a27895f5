//! The count of a worker's open connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One open connection. It counts until it is dropped.
pub(super) struct OpenConnection(Arc<AtomicUsize>);

impl OpenConnection {
    pub(super) fn count(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
