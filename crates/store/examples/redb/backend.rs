//! The store on redb as a backend: what a node needs of it beside decisions.

use weir_core::lease::{LeaseAnswer, LeasePage};
use weir_store::backend::{Backend, BackendWork, every_second};
use weir_store::{LeaseAsk, LeaseStore, LeasesAsk, StoreError};

use super::store::RedbStore;

const NO_LEASES: StoreError =
    StoreError::Unsupported("the store on redb has no leases; the memory store and Redis have");

/// Every access is the store itself. It runs no scripts and is not this process, so queues refuse to start on it.
impl Backend for RedbStore {
    type Worker = Self;
    type LazyWorker = Self;
    type Decisions = Self;

    fn worker(&self) -> Self {
        self.clone()
    }

    fn lazy_worker(&self) -> Self {
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

impl LeaseStore for RedbStore {
    async fn lease(&self, _: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        Err(NO_LEASES)
    }

    async fn leases(&self, _: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        Err(NO_LEASES)
    }
}
