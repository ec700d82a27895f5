//! Redis as a backend: the store of each worker with what stands in front of it, and the monitor of the nodes.
//!
//! ```text
//!   local ── layer ── coalesce ── denials ── RedisStore
//! ```

use std::sync::Arc;

use tokio::sync::watch;
use weir_config::RedisConfig;
use weir_time::clock::{Clock, Monotonic};

use super::{RedisShared, RedisStore};
use crate::backend::{
    Backend, BackendStats, BackendStatus, BackendWork, RulesDigest, StoreLayer, every_second,
};
use crate::coalesce::Coalesce;
use crate::denials::{Denials, DenialsShared};
use crate::local::{LocalFallback, LocalShared};
use crate::scripts::{AskScripts, ScriptClient, UsesInForce};

/// One worker's store that decides exactly.
pub type ExactStore = Coalesce<Denials<RedisStore>>;

/// Redis, with what all workers of a process share of it. Clones share it.
#[derive(Clone)]
pub struct RedisBackend<L> {
    shared: RedisShared,
    config: RedisConfig,
    clock: Clock,
    denials: DenialsShared,
    local: LocalShared,
    layer: L,
    uses: UsesInForce,
}

impl<L> RedisBackend<L> {
    /// Opens no connection yet. The probes exercise `uses`.
    pub fn new(
        shared: RedisShared,
        config: &RedisConfig,
        clock: &Clock,
        (layer, uses): (L, UsesInForce),
    ) -> Self {
        let denials = DenialsShared::new(config.denials_max_age, Monotonic::from_clock(clock));
        let local = LocalShared::new(config.local_budget, clock.clone());
        Self { shared, config: config.clone(), clock: clock.clone(), denials, local, layer, uses }
    }
}

impl<L: StoreLayer<ExactStore, RedisStore>> Backend for RedisBackend<L> {
    type Worker = RedisStore;
    type Decisions = LocalFallback<L::Store>;

    fn worker(&self) -> RedisStore {
        self.shared.store()
    }

    fn decisions(&self, worker: &RedisStore) -> Self::Decisions {
        let exact = Coalesce::on(&self.clock, self.denials.before(worker.clone()), &self.config);
        self.local.before(self.layer.layered(exact, worker.clone()))
    }

    fn status_changes(&self) -> Option<watch::Receiver<()>> {
        Some(self.shared.health().changes())
    }

    fn status(&self) -> BackendStatus {
        self.shared.health().status()
    }

    fn publish_rules(&self, rules: RulesDigest) {
        self.shared.health().publish_rules(rules);
    }

    fn open_files(&self, workers: usize) -> usize {
        self.config.open_files(workers)
    }

    fn scripts(&self) -> Option<ScriptClient> {
        Some(self.shared.scripts())
    }

    fn scripts_of(&self, worker: &RedisStore) -> Option<Arc<dyn AskScripts>> {
        Some(Arc::new(worker.clone()))
    }

    fn stats(&self) -> BackendStats {
        BackendStats {
            memory: None,
            connections: Some(self.shared.connections().now()),
            single_slot_calls: Some(self.shared.single_slot_calls()),
            local: Some(self.local.stats()),
            denials: Some(self.denials.stats()),
        }
    }

    fn run(&self) -> BackendWork {
        let (shared, local, uses) = (self.shared.clone(), self.local.clone(), self.uses.clone());
        Box::pin(async move { tokio::join!(shared.monitor(&uses), every_second(|| local.sweep())).0 })
    }
}
