//! Leases while their slot moves to another node.

use std::sync::Arc;

use weir_config::Topology;
use weir_core::key::Subject;
use weir_core::strategy::{
    ConcurrencyNumbers, ConcurrencyRule, FailurePolicy, Field, LimitSource, Scope, Strategy,
};
use weir_leases::model::{LeaseOp, LeaseOutcome, WorkOutcome};
use weir_leases::store::{LeaseAsk, LeaseStore as _};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_units::Micros;

use super::super::{recovered, shared, watchful};
use crate::support::{Cluster, watched};

const MINUTE: Micros = Micros::from_secs(60);
const ACQUIRE: LeaseOp = LeaseOp::Acquire { weight: 1, ttl: MINUTE };
const RENEW: LeaseOp = LeaseOp::Renew { ttl: MINUTE };
const RELEASE: LeaseOp = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };

/// The result of a call about a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Granted,
    Known,
    Refused,
    Released,
    Nothing,
}

/// Callers of a limit of two permits.
struct Callers {
    store: RedisStore,
    strategy: Arc<Strategy>,
}

impl Callers {
    async fn new(cluster: &Cluster) -> Self {
        let store = watched(&shared(&watchful(cluster.urls(), Topology::Cluster))).await;
        let source = LimitSource::Fixed(2);
        let numbers =
            ConcurrencyNumbers { source, ttl: MINUTE, max_ttl: MINUTE, max_weight: None, partitions: None };
        let rule = ConcurrencyRule::new(numbers).unwrap();
        let scope = Scope::new(&[Field::Resource]);
        let strategy = Strategy::of_leases("moving", scope, rule, FailurePolicy::Error).unwrap();
        let callers = Self { store, strategy: Arc::new(strategy) };
        // Each node has some of these, so all are connected to.
        recovered("a lease on each node", async || {
            for index in 0..20 {
                let resource = format!("other{index}");
                if callers.call(&resource, "a", ACQUIRE).await.is_err() {
                    return false;
                }
            }
            true
        })
        .await;
        cluster.flush_all();
        callers
    }

    async fn call(&self, resource: &str, id: &str, op: LeaseOp) -> Result<(Did, u64), StoreError> {
        let subject = Subject { resource, ..Subject::default() };
        let ask = LeaseAsk { strategy: &self.strategy, subject, id, op, deadline: None };
        let answer = self.store.lease(&ask).await?;
        let did = match answer.outcome {
            LeaseOutcome::Held { is_new: true, .. } => Did::Granted,
            LeaseOutcome::Held { is_new: false, .. } => Did::Known,
            LeaseOutcome::Refused { .. } => Did::Refused,
            LeaseOutcome::Released => Did::Released,
            _ => Did::Nothing,
        };
        Ok((did, answer.in_flight))
    }

    /// Of two leases, `held` is there. Calls that find it, renew it, exceed the limit, and use the other permit.
    async fn work(&self, when: &str) {
        for (id, op, expected) in [
            ("held", ACQUIRE, (Did::Known, 1)),
            ("other", ACQUIRE, (Did::Granted, 2)),
            ("third", ACQUIRE, (Did::Refused, 2)),
            ("held", RENEW, (Did::Known, 2)),
            ("other", RELEASE, (Did::Released, 1)),
            ("other", RELEASE, (Did::Nothing, 1)),
        ] {
            assert_eq!(self.call("moved", id, op).await, Ok(expected), "{when}: {id} {op:?}");
        }
    }
}

/// Leases that are held can be renewed and released during the whole migration, and the limit holds.
#[tokio::test]
async fn leases_of_a_slot_that_moves() {
    let cluster = Cluster::start(3, 0);
    let callers = Callers::new(&cluster).await;
    assert_eq!(callers.call("moved", "held", ACQUIRE).await, Ok((Did::Granted, 1)));
    let key = cluster.all_keys().into_keys().find(|key| key.ends_with("moved")).unwrap();
    let slot = cluster.slot_of(&key);
    let owner = cluster.primary_of_slot(slot).port();
    let target = cluster.nodes().iter().position(|node| node.port() != owner).unwrap();
    callers.work("before").await;
    let migration = cluster.begin_migration(slot, target);
    callers.work("marked as moving").await;
    migration.move_keys();
    callers.work("keys gone, slot not yet: ASK").await;
    migration.finish();
    callers.work("moved: MOVED").await;
    callers.work("map refreshed").await;
    assert_eq!(callers.call("moved", "held", RELEASE).await, Ok((Did::Released, 0)));
}

/// While its slot moves, a key without leases has neither of its two records, and Redis answers TRYAGAIN to a script that
/// needs both. Such a call fails and grants nothing; the first one after the migration is granted.
#[tokio::test]
async fn the_first_lease_of_a_key_waits_until_its_slot_has_moved() {
    let cluster = Cluster::start(3, 0);
    let callers = Callers::new(&cluster).await;
    callers.call("moved", "first", ACQUIRE).await.unwrap();
    let key = cluster.all_keys().into_keys().find(|key| key.ends_with("moved")).unwrap();
    let slot = cluster.slot_of(&key);
    callers.call("moved", "first", RELEASE).await.unwrap();
    let owner = cluster.primary_of_slot(slot).port();
    let target = cluster.nodes().iter().position(|node| node.port() != owner).unwrap();
    let migration = cluster.begin_migration(slot, target);
    let refused = callers.call("moved", "first", ACQUIRE).await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(why)) if why.contains("Multiple keys request")),
        "{refused:?}"
    );
    migration.finish();
    assert_eq!(
        callers.call("moved", "second", ACQUIRE).await,
        Ok((Did::Granted, 1)),
        "nothing was granted before"
    );
}
