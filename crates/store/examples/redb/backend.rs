//! The store on redb as a backend: what a node needs of it beside decisions.

use weir_store::backend::{Backend, BackendWork, every_second};

use super::store::RedbStore;

/// Every access is the store itself. It runs no scripts and is not this process, so there are no queues and no leases on it.
impl Backend for RedbStore {
    type Worker = Self;
    type Decisions = Self;

    fn worker(&self) -> Self {
        self.clone()
    }

    fn decisions(&self, worker: &Self) -> Self {
        worker.clone()
    }

    fn open_files(&self, _workers: usize) -> usize {
        1
    }

    fn run(&self) -> BackendWork {
        let store = self.clone();
        Box::pin(every_second(move || {
            if let Err(error) = store.sweep() {
                tracing::warn!(%error, "cannot write the file of limits; will retry");
            }
        }))
    }
}
