//! The engines of leases, and strategies for tests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use weir_config::{MemoryConfig, Topology};
use weir_core::key::{self, Subject};
use weir_core::strategy::{
    AdaptiveRule, ConcurrencyNumbers, ConcurrencyRule, ControllerRule, FailurePolicy, Field, LimitSource,
    ProbeRule, Scope, Strategy, VegasRule,
};
use weir_leases::model::{LeaseAnswer, LeaseCall, LeaseOp, LeasePage, LeaseSet};
use weir_leases::store::{LeaseAsk, LeaseStore, LeasesAsk, ProcessLeases};
use weir_store::StoreError;
use weir_store::memory::MemoryStore;
use weir_store::redis::RedisStore;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use crate::support;

/// 2024-01-01T00:00:00Z.
pub const START: u64 = 1_704_067_200_000_000;

/// The pure state machine over a map.
pub struct PureLeases {
    keys: Mutex<HashMap<Vec<u8>, LeaseSet>>,
    clock: ManualClock,
}

impl LeaseStore for PureLeases {
    async fn lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        let mut name = Vec::new();
        key::write_lease_name(&mut name, ask.strategy, &ask.subject);
        let mut keys = self.keys.lock().unwrap();
        let (partition, jitter) = (ask.partition(), ask.jitter());
        let call = LeaseCall { now: self.clock.now(), id: ask.id, op: ask.op, partition, jitter };
        Ok(keys.entry(name).or_default().call(ask.strategy.permits().unwrap(), &call))
    }

    async fn leases(&self, ask: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        let mut name = Vec::new();
        key::write_lease_name(&mut name, ask.strategy, &ask.subject);
        let mut keys = self.keys.lock().unwrap();
        Ok(keys.entry(name).or_default().page(self.clock.now(), ask.after))
    }
}

/// The pure state machine on a clock.
pub fn pure(clock: &ManualClock) -> PureLeases {
    PureLeases { keys: Mutex::default(), clock: clock.clone() }
}

/// Leases in this process, on a clock.
pub fn memory(clock: &ManualClock) -> ProcessLeases {
    ProcessLeases::new(MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone())).states())
}

/// The Redis that tests share.
pub async fn redis(clock: &ManualClock) -> RedisStore {
    let nodes = vec![support::shared_redis().url()];
    support::redis_store(nodes, Topology::Single, Clock::Manual(clock.clone())).await
}

/// The cluster that tests share.
pub async fn cluster(clock: &ManualClock) -> RedisStore {
    let nodes = support::shared_cluster().urls();
    support::redis_store(nodes, Topology::Cluster, Clock::Manual(clock.clone())).await
}

/// So many permits, for 30 s if a holder does not say.
pub fn numbers(limit: u64) -> ConcurrencyNumbers {
    ConcurrencyNumbers {
        source: LimitSource::Fixed(limit),
        ttl: Micros::from_secs(30),
        max_ttl: Micros::from_secs(3600),
        max_weight: None,
        partitions: None,
    }
}

/// A limit that follows what its holders report.
pub fn adaptive((initial, min, max): (u64, u64, u64), controller: ControllerRule) -> AdaptiveRule {
    AdaptiveRule { initial, min, max, controller, sampling: None, idle: Micros::from_secs(600) }
}

pub fn vegas(smoothing: f64, probe: ProbeRule) -> ControllerRule {
    ControllerRule::Vegas(VegasRule { smoothing, alpha: None, beta: None, probe })
}

/// A strategy that counts by resource and consumer.
pub fn strategy(name: &str, numbers: ConcurrencyNumbers) -> Arc<Strategy> {
    let rule = ConcurrencyRule::new(numbers).unwrap_or_else(|error| panic!("{name}: {error}"));
    let scope = Scope::new(&[Field::Resource, Field::Consumer]);
    Arc::new(Strategy::of_leases(name, scope, rule, FailurePolicy::Error).unwrap())
}

/// One call, of one subject.
pub fn ask<'a>(strategy: &'a Arc<Strategy>, id: &'a str, op: LeaseOp) -> LeaseAsk<'a> {
    let subject = Subject { resource: "resource", consumer: "consumer", ..Subject::default() };
    LeaseAsk { strategy, subject, id, op, deadline: None }
}
