//! Weir's own stores, ready for use.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use weir_config::{Login, MemoryConfig, RedisConfig, Secret, StoreConfig, Topology};
use weir_core::algorithm::{LimitVerdict, Op, Verdict};
use weir_core::key::KeySecret;
use weir_core::strategy::Strategy;
use weir_store::coalesce::Coalesce;
use weir_store::denials::{Denials, DenialsShared};
use weir_store::memory::MemoryStore;
use weir_store::redis::{RedisShared, RedisStore};
use weir_store::{
    Answers, BudgetDecision, Decision, OwnedSubject, Store, StoreAnswer, StoreError, Verdicts, decide_one,
};
use weir_time::clock::{Clock, Monotonic};
use weir_units::Micros;

use super::{SOON, shared_cluster, shared_redis};

/// A configuration for tests that are not about time: a machine that all of them share, or one that is
/// moved, can keep ten thousand callers waiting for many seconds, and a connection's first answer as well.
pub fn redis_config(nodes: Vec<String>, topology: Topology) -> RedisConfig {
    let patience = Micros::from_secs(60);
    RedisConfig { nodes, topology, deadline: patience, connect_timeout: patience, ..RedisConfig::default() }
}

/// The memory store.
pub fn memory() -> StoreConfig {
    StoreConfig::Memory(MemoryConfig::default())
}

/// The Redis that tests share.
pub fn redis() -> StoreConfig {
    roomy(vec![shared_redis().url()], Topology::Single)
}

/// The cluster that tests share.
pub fn cluster() -> StoreConfig {
    roomy(shared_cluster().urls(), Topology::Cluster)
}

/// With room for all callers of a test to wait at once, so that none is answered by a policy.
fn roomy(nodes: Vec<String>, topology: Topology) -> StoreConfig {
    StoreConfig::Redis(RedisConfig { max_waiting: 20_000, ..redis_config(nodes, topology) })
}

/// A store on the current runtime, with its watcher, once it has found its nodes.
pub async fn redis_store(nodes: Vec<String>, topology: Topology, clock: Clock) -> RedisStore {
    watched(&RedisShared::new(&redis_config(nodes, topology), KeySecret::BUILT_IN, clock)).await
}

/// Starts the watcher on the current runtime and waits until it has found something.
pub async fn watched(shared: &RedisShared) -> RedisStore {
    let (found, ready) = oneshot::channel();
    let (shared, store) = (shared.clone(), shared.store());
    tokio::spawn(async move {
        let mut found = Some(found);
        let report = |outcome: Result<(), String>| {
            if outcome.is_ok()
                && let Some(found) = found.take()
            {
                let _ = found.send(());
            }
        };
        shared.watch(report).await;
    });
    tokio::time::timeout(SOON, ready).await.expect("Redis is found").expect("the watcher lives");
    store
}

/// The layers that save calls to Redis. Answers are exact with each of them on or off.
#[derive(Debug, Clone, Copy)]
pub struct Accelerators {
    /// Known denials are answered without the store.
    pub denials: bool,
    /// Callers of the same keys are decided together, after the call in flight.
    pub coalesce: bool,
    /// A call to a cluster's node has keys of several slots.
    pub spans: bool,
}

impl Accelerators {
    /// All of them, each without the others, and none.
    pub const SETS: [Self; 5] = [
        Self::new(true, true, true),
        Self::new(true, false, false),
        Self::new(false, true, false),
        Self::new(false, false, true),
        Self::new(false, false, false),
    ];

    const fn new(denials: bool, coalesce: bool, spans: bool) -> Self {
        Self { denials, coalesce, spans }
    }

    /// True if all of them are on.
    pub fn all(self) -> bool {
        self.denials && self.coalesce && self.spans
    }

    /// The same store with these alone.
    pub fn config(self, config: RedisConfig) -> RedisConfig {
        let denials_max_age = if self.denials { config.denials_max_age } else { Micros::ZERO };
        let login = (!self.spans && config.topology == Topology::Cluster).then(without_spans);
        RedisConfig { denials_max_age, coalesce: self.coalesce, login: login.or(config.login), ..config }
    }

    /// Wraps a store in these layers, as a service does.
    pub fn before<S: Store>(self, store: S, config: &RedisConfig, clock: &Clock) -> Coalesce<Denials<S>> {
        let config = self.config(config.clone());
        let denials = DenialsShared::new(config.denials_max_age, Monotonic::from_clock(clock));
        Coalesce::before(denials.before(store), &config)
    }
}

/// A user of [`shared_cluster`] without the rights for the command that tries calls across slots.
fn without_spans() -> Login {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        for node in shared_cluster().nodes() {
            node.cli(&["ACL", "SETUSER", "apart", "on", ">apart", "~*", "+@all", "-cluster|countkeysinslot"]);
        }
    });
    Login { username: Some("apart".to_owned()), password: Secret::new("apart") }
}

/// A store that counts calls; by default around the memory store.
#[derive(Clone)]
pub struct Counting<S = MemoryStore>(pub S, pub Arc<AtomicUsize>);

impl<S: Store> Store for Counting<S> {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        self.1.fetch_add(decisions.len(), SeqCst);
        self.0.decide(decisions, answers);
    }

    fn decide_costs(&self, decision: &BudgetDecision<'_>) -> StoreAnswer<Verdicts> {
        self.1.fetch_add(1, SeqCst);
        self.0.decide_costs(decision)
    }

    fn patience(&self) -> Option<Duration> {
        self.0.patience()
    }
}

/// A decision that owns its data, for stores that answer later.
#[derive(Debug, Clone)]
pub struct OwnedDecision {
    strategy: Arc<Strategy>,
    subject: OwnedSubject,
    /// The operation.
    pub op: Op,
    /// The costs.
    pub costs: Vec<u64>,
    deadline: Option<Instant>,
}

impl OwnedDecision {
    /// A copy of a decision over all limits.
    pub fn new(decision: &Decision<'_>) -> Self {
        let Decision { strategy, ref subject, op, costs, deadline, .. } = *decision;
        let deadline = deadline.copied();
        let (strategy, subject, costs) = (Arc::clone(strategy), OwnedSubject::new(subject), costs.to_vec());
        Self { strategy, subject, op, costs, deadline }
    }

    /// The verdicts of `store`.
    pub async fn ask<S: Store>(&self, store: &S) -> Result<Verdicts, StoreError> {
        let decision = Decision::new(&self.strategy, self.subject.subject(), self.op, &self.costs);
        let decided = decide_one(store, &Decision { deadline: self.deadline.as_ref(), ..decision });
        decided.verdicts().await
    }
}

/// Decides several decisions on a store that answers at once. Returns the answers, and the limits of those that did
/// not fail.
pub fn decide_ready<S: Store>(
    store: &S,
    decisions: &[Decision<'_>],
) -> (Vec<Result<Verdict, StoreError>>, Vec<LimitVerdict>) {
    let mut answers = Answers::default();
    store.decide(decisions, &mut answers);
    let ready = |answer| match answer {
        StoreAnswer::Ready(decided) => decided,
        StoreAnswer::Later(_) => panic!("the store does not answer at once"),
    };
    (answers.each.into_iter().map(ready).collect(), answers.limits.into_vec())
}

/// Returns the answer that a store has without a call.
pub fn known<S: Store>(store: &S, decision: &Decision<'_>) -> Option<Verdicts> {
    let mut answers = Answers::default();
    store.known(std::slice::from_ref(decision), &mut answers);
    match answers.each.pop() {
        Some(StoreAnswer::Ready(verdict)) => {
            let decisions = [verdict.expect("what is known is no error")].into();
            Some(Verdicts { decisions, limits: answers.limits, ..Verdicts::default() })
        }
        _ => None,
    }
}

/// A store that is asked for one decision at a time.
pub trait DecideOne: Store + Sized {
    /// Decides each of `costs` in turn, under these limits and for this subject, and appends the verdicts to `out`.
    fn decide_one(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move {
            let decided = decide_one(self, &Decision { op, costs, ..*decision });
            let verdicts = decided.verdicts().await?;
            out.decisions.extend(verdicts.decisions);
            out.limits.extend(verdicts.limits);
            Ok(())
        }
    }
}

impl<S: Store> DecideOne for S {}

/// The tests `memory`, `redis` and `cluster`, which call a function with the configuration of each store.
#[macro_export]
macro_rules! on_every_store {
    ($holds_on:path) => {
        #[tokio::test]
        async fn memory() {
            $holds_on($crate::stores::memory()).await;
        }

        #[tokio::test]
        async fn redis() {
            $holds_on($crate::stores::redis()).await;
        }

        #[tokio::test]
        async fn cluster() {
            $holds_on($crate::stores::cluster()).await;
        }
    };
}
