//! The decisions of one worker, which follow the snapshot.

use std::sync::Arc;

use weir_grpc::BufferBudget;
use weir_store::Store;

use super::LiveSnapshot;
use super::live::Follower;
use crate::limiter::Limiter;
use crate::service::{DecisionService, Snapshot};
use crate::telemetry::WorkerRecorder;

/// Creates the decisions of one worker under the current snapshot. They follow the later ones while the worker lives.
pub(crate) fn decisions<S: Store>(
    store: S,
    live: &LiveSnapshot,
    recorder: Arc<WorkerRecorder>,
    (largest, budget): (usize, Option<BufferBudget>),
) -> Arc<DecisionService<S>> {
    live.join(|snapshot| {
        let (rules, counted) = (Arc::clone(&snapshot.rules), recorder.under(&snapshot.rows));
        let limiter = Limiter::new(rules, store, counted);
        let limiter = limiter.with_guard(snapshot.guard.clone()).with_reserve(snapshot.reserve);
        let decisions = DecisionService::within(limiter, Arc::clone(&snapshot.templates), largest, budget);
        let followed = Arc::downgrade(&decisions);
        let follow = move |snapshot: &Snapshot| {
            let Some(decisions) = followed.upgrade() else { return false };
            decisions.follow(snapshot, recorder.under(&snapshot.rows));
            true
        };
        // The first snapshot has more than the constructors take.
        follow(snapshot);
        (decisions, Box::new(follow) as Follower)
    })
}
