//! The services of one worker that follow the snapshot.

use std::sync::{Arc, Weak};

use tokio::sync::watch;
use weir_grpc::BufferBudget;
use weir_store::Store;

use super::live::Follower;
use super::{LiveSnapshot, WorkerStores};
use crate::leases::Leases;
use crate::limiter::Limiter;
use crate::queues::Queues;
use crate::readiness::State;
use crate::service::{CurrentLeases, DecisionService, Snapshot, WorkerQueues};
use crate::telemetry::Metrics;

/// The services of one worker that follow the snapshot.
pub(crate) struct WorkerParts<S> {
    pub(crate) decisions: Arc<DecisionService<S>>,
    pub(super) leases: Option<Arc<CurrentLeases>>,
    pub(super) queues: Option<WorkerQueues>,
}

impl<S: Store> WorkerParts<S> {
    /// Creates them under the current snapshot. They follow the later ones while the worker lives.
    pub(crate) fn new(
        stores: WorkerStores<S>,
        live: &LiveSnapshot,
        metrics: &Metrics,
        node: watch::Receiver<State>,
        (largest, budget): (usize, Option<BufferBudget>),
    ) -> Self {
        let metrics = metrics.clone();
        live.join(|snapshot| {
            let counters = metrics.worker();
            let mut rows = snapshot.rows.clone();
            let mut recorder = metrics.recorder_in(&rows, &counters);
            let rules = || Arc::clone(&snapshot.rules);
            let limiter = Limiter::new(rules(), stores.decisions, Arc::clone(&recorder));
            let limiter = limiter.with_bans(snapshot.bans.clone()).with_reserve(snapshot.reserve);
            let decisions =
                DecisionService::within(limiter, Arc::clone(&snapshot.templates), largest, budget);
            let leases = stores.leases.map(|store| {
                let leases =
                    Leases::new(rules(), store, Arc::clone(&recorder)).with_reserve(snapshot.reserve);
                CurrentLeases::new(leases, Arc::clone(&snapshot.templates))
            });
            let queues = stores.queues.map(|store| {
                let queues = Queues::new(Arc::clone(&snapshot.queues), store, Arc::clone(&counters), node);
                WorkerQueues::new(Arc::new(queues.with_reserve(snapshot.reserve)).into())
            });
            let started = Self { decisions, leases, queues };
            let (decisions, leases, queues) = started.downgraded();
            let mut follow = move |snapshot: &Snapshot| {
                let Some(decisions) = decisions.upgrade() else { return false };
                if !rows.is_same(&snapshot.rows) {
                    rows = snapshot.rows.clone();
                    recorder = metrics.recorder_in(&rows, &counters);
                }
                decisions.follow(snapshot, Arc::clone(&recorder));
                if let Some(leases) = leases.as_ref().and_then(Weak::upgrade) {
                    leases.follow(snapshot, Arc::clone(&recorder));
                }
                if let Some(queues) = queues.as_ref().and_then(Weak::upgrade) {
                    queues.store(Arc::new(
                        queues.load().under(Arc::clone(&snapshot.queues), snapshot.rights.clone()),
                    ));
                }
                true
            };
            // The first snapshot has more than the constructors take.
            follow(snapshot);
            (started, Box::new(follow) as Follower)
        })
    }

    fn downgraded(&self) -> (Weak<DecisionService<S>>, Option<Weak<CurrentLeases>>, Option<WeakQueues>) {
        let leases = self.leases.as_ref().map(Arc::downgrade);
        (Arc::downgrade(&self.decisions), leases, self.queues.as_ref().map(Arc::downgrade))
    }
}

/// A reference to a worker's queues that does not keep them.
type WeakQueues = Weak<arc_swap::ArcSwap<Queues>>;
