//! The services of one worker that follow the snapshot.

use std::sync::{Arc, Weak};

use weir_grpc::BufferBudget;
use weir_store::Store;

use super::live::Follower;
use super::{LiveSnapshot, WorkerStores};
use crate::leases::Leases;
use crate::limiter::Limiter;
use crate::service::{CurrentLeases, DecisionService, Snapshot};
use crate::telemetry::{Metrics, WorkerCounters};

/// The services of one worker that follow the snapshot.
pub(crate) struct WorkerParts<S> {
    pub(crate) decisions: Arc<DecisionService<S>>,
    pub(super) leases: Option<Arc<CurrentLeases>>,
}

impl<S: Store> WorkerParts<S> {
    /// Creates them under the current snapshot. They follow the later ones while the worker lives.
    pub(crate) fn new(
        stores: WorkerStores<S>,
        live: &LiveSnapshot,
        metrics: &Metrics,
        counters: Arc<WorkerCounters>,
        (largest, budget): (usize, Option<BufferBudget>),
    ) -> Self {
        let metrics = metrics.clone();
        live.join(|snapshot| {
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
            let started = Self { decisions, leases };
            let (decisions, leases) = started.downgraded();
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
                true
            };
            // The first snapshot has more than the constructors take.
            follow(snapshot);
            (started, Box::new(follow) as Follower)
        })
    }

    fn downgraded(&self) -> (Weak<DecisionService<S>>, Option<Weak<CurrentLeases>>) {
        (Arc::downgrade(&self.decisions), self.leases.as_ref().map(Arc::downgrade))
    }
}
