//! Leases: permits that callers hold for a time, and limits that adapt to what the holders report.
//!
//! ```text
//!   service ── messages ⇄ calls ── finds the strategy, asks the store, counts ── store ─┬─ scripts: lua/leases/
//!       └─ ConcurrencyService, LeaseAdminService                                        └─ memory: this process
//! ```
//!
//! `model` says who holds which permits. How many there are, say the strategies of the trunk.

pub mod calls;
mod metrics;
pub mod model;
mod service;
pub mod store;

use std::sync::Arc;

use weir_config::AccessRight::{Inspect, Lease, Reset};
use weir_node::feature::{
    Feature, FeatureServices, MethodSpec, NodeBuilder, RunningFeature, ServiceContext, ServiceSpec,
    StartError, UsedScripts,
};
use weir_node::service::Snapshot;
use weir_proto::v1::{concurrency_service_server, lease_admin_service_server};

use self::calls::Leases;
use self::metrics::PermitGauges;
use self::service::CurrentLeases;
use self::store::{LEASES, LeaseHandle, ProcessLeases};

/// The feature `leases`.
#[derive(Debug)]
pub struct LeasesFeature;

/// The scripts, with the configurations that need them.
static SCRIPTS: [UsedScripts; 1] = [(&LEASES, |snapshot| snapshot.rules.has_leases())];

/// Leases, once they run.
struct RunningLeases {
    /// Storage for all workers. `None` for scripts on the connections of each worker's decisions: an acquisition is a
    /// decision.
    store: Option<LeaseHandle>,
    gauges: PermitGauges,
}

impl Feature for LeasesFeature {
    fn name(&self) -> &'static str {
        "leases"
    }

    fn services(&self) -> &'static [ServiceSpec] {
        const CALLS: ServiceSpec = ServiceSpec {
            methods: &[
                MethodSpec::new("/weir.v1.ConcurrencyService/Acquire", &[Lease]),
                MethodSpec::new("/weir.v1.ConcurrencyService/Renew", &[Lease]),
                MethodSpec::new("/weir.v1.ConcurrencyService/Release", &[Lease]),
            ],
            ..ServiceSpec::new(
                concurrency_service_server::SERVICE_NAME,
                "ConcurrencyService is there if a strategy has `concurrency`",
            )
        };
        const OPERATORS: ServiceSpec = ServiceSpec {
            methods: &[
                MethodSpec::new("/weir.v1.LeaseAdminService/ListLeases", &[Inspect]),
                MethodSpec::new("/weir.v1.LeaseAdminService/ReleaseLeases", &[Reset]),
            ],
            ..ServiceSpec::new(
                lease_admin_service_server::SERVICE_NAME,
                "LeaseAdminService is there with `server.admin_service: true`",
            )
        };
        &[CALLS, OPERATORS]
    }

    fn scripts(&self) -> &'static [UsedScripts] {
        &SCRIPTS
    }

    fn start(&self, node: &mut NodeBuilder<'_>) -> Result<Option<Arc<dyn RunningFeature>>, StartError> {
        let storage = node.storage;
        let store = match (&storage.process, &storage.scripts) {
            (Some(states), _) => Some(LeaseHandle::Process(ProcessLeases::new(states.clone()))),
            (None, Some(_)) => None,
            (None, None) => Some(LeaseHandle::Nowhere),
        };
        let gauges = PermitGauges::default();
        node.show(gauges.collector()?)?;
        let shown = gauges.clone();
        node.followers.push(Box::new(move |snapshot| {
            shown.follow(Arc::clone(&snapshot.rules));
            true
        }));
        Ok(Some(Arc::new(RunningLeases { store, gauges })))
    }
}

impl RunningFeature for RunningLeases {
    fn services(&self, worker: &ServiceContext, snapshot: &Snapshot) -> FeatureServices {
        let store = self.store.clone().or_else(|| worker.scripts.clone().map(LeaseHandle::Scripts));
        let Some(store) = store else { return FeatureServices::default() };
        let recorder = Arc::clone(&worker.recorder);
        let (rules, counted) = (Arc::clone(&snapshot.rules), recorder.under(&snapshot.rows));
        let leases = Leases::new(rules, store, counted, self.gauges.worker());
        let leases = leases.with_reserve(snapshot.reserve);
        let leases = CurrentLeases::new(leases, Arc::clone(&snapshot.templates));
        // The first snapshot has more than the constructors take.
        leases.follow(snapshot, recorder.under(&snapshot.rows));
        let routes = service::routes(&leases, worker);
        let followed = Arc::downgrade(&leases);
        let follow = move |snapshot: &Snapshot| {
            let Some(leases) = followed.upgrade() else { return false };
            leases.follow(snapshot, recorder.under(&snapshot.rows));
            true
        };
        FeatureServices { routes, follow: Some(Box::new(follow)), ..FeatureServices::default() }
    }
}
