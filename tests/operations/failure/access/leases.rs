//! Everything that can happen to a lease.

use std::sync::Arc;

use weir_core::key::Subject;
use weir_core::strategy::{
    AdaptiveRule, AimdRule, Attributes, ConcurrencyNumbers, ConcurrencyRule, ControllerRule, FailurePolicy,
    Field, LimitSource, Partitions, Scope, Strategy,
};
use weir_leases::model::{LeaseOp, WorkOutcome};
use weir_leases::store::{LeaseAsk, LeaseStore as _};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_units::Micros;

use crate::support::{RedisServer, SOON, eventually};

/// Does it on keys of its own; what the store refused.
pub(crate) async fn everything(store: &RedisStore, redis: &RedisServer, name: &str) -> Vec<StoreError> {
    let controller = ControllerRule::Aimd(AimdRule { backoff: 0.9, timeout: Micros::from_secs(5) });
    let idle = Micros::from_secs(60);
    let adaptive = AdaptiveRule { initial: 2, min: 2, max: 9, controller, sampling: None, idle };
    let sources = [LimitSource::Fixed(2), LimitSource::Adaptive(adaptive)];
    let mut failures = Vec::new();
    for (number, source) in sources.into_iter().enumerate() {
        let strategy = strategy(source);
        let resource = format!("{name} {number}");
        let call = async |tier: &str, id: &str, op: LeaseOp| {
            let tier = [("tier", tier)];
            let attributes = Attributes::of_pairs(&tier);
            let subject = Subject { resource: &resource, attributes, ..Subject::default() };
            let ask = LeaseAsk { strategy: &strategy, subject, id, op, deadline: None };
            store.lease(&ask).await.err()
        };
        let acquire = |ttl| LeaseOp::Acquire { weight: 1, ttl: Micros::from_millis(ttl) };
        let release = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
        let renew = LeaseOp::Renew { ttl: Micros::from_secs(60) };
        // The first lease ends by itself, and another partition's call removes it.
        failures.extend(call("gold", "short", acquire(1)).await);
        let now = || redis.query::<Vec<u64>>(&["TIME"]).iter().fold(0, |sum, part| sum * 1_000_000 + part);
        let acquired = now();
        eventually(SOON, "its end", || now() > acquired + 1_000);
        for (tier, id, op) in [
            ("silver", "a", acquire(60_000)),
            ("silver", "a", acquire(60_000)),
            ("silver", "b", acquire(60_000)),
            // It is refused, and says when it might not be.
            ("silver", "c", acquire(60_000)),
            ("gold", "a", renew),
            ("silver", "a", release),
            ("silver", "b", release),
        ] {
            failures.extend(call(tier, id, op).await);
        }
    }
    failures
}

fn strategy(source: LimitSource) -> Arc<Strategy> {
    let shares = vec![("gold".into(), 1), ("silver".into(), 1)];
    let hour = Micros::from_secs(3600);
    let partitions = Some(Partitions::new("tier", shares));
    let numbers = ConcurrencyNumbers { source, ttl: hour, max_ttl: hour, max_weight: None, partitions };
    let rule = ConcurrencyRule::new(numbers).unwrap();
    let scope = Scope::new(&[Field::Resource]);
    Arc::new(Strategy::of_leases("acl", scope, rule, FailurePolicy::Error).unwrap())
}
