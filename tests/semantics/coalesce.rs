//! One call in flight for each set of keys. Every caller gets its own answer.

mod interleave;
mod known;
mod order;

use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_testing::DecideOne as _;
use weir_testing::stores::OwnedDecision;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use weir_config::{MemoryConfig, RedisConfig};
use weir_core::algorithm::{Algorithm, Op};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::coalesce::Coalesce;
use weir_store::denials::{Denials, DenialsShared};
use weir_store::memory::MemoryStore;
use weir_store::{Answers, Decision, Store, StoreError, Verdicts};
use weir_time::clock::{Clock, ManualClock, Monotonic};
use weir_units::Micros;

type Calls = Vec<(Op, Vec<u64>)>;

/// A memory store whose calls wait until they are let through, and are written down.
#[derive(Clone)]
struct Gated {
    store: MemoryStore,
    gate: Arc<Semaphore>,
    calls: Arc<Mutex<Calls>>,
}

impl Store for Gated {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions.iter().map(OwnedDecision::new) {
            let this = self.clone();
            answers.later(async move {
                this.calls.lock().push((decision.op, decision.costs.clone()));
                this.gate.acquire().await.unwrap().forget();
                if decision.costs.contains(&999) {
                    return Err(StoreError::Full(999));
                }
                decision.ask(&this.store).await
            });
        }
    }
}

struct World {
    gated: Gated,
    clock: ManualClock,
    coalesce: Arc<Coalesce<Denials<Gated>>>,
    strategy: Arc<Strategy>,
}

type Answer = Result<(bool, u64), StoreError>;

impl World {
    fn new(config: RedisConfig) -> Self {
        Self::over(config, &[&[Field::Resource, Field::Consumer]])
    }

    /// Windows of ten units, by these scopes.
    fn over(config: RedisConfig, scopes: &[&[Field]]) -> Self {
        Self::knowing(config, scopes, Micros(0))
    }

    /// The same, where denials are known for so long.
    fn knowing(config: RedisConfig, scopes: &[&[Field]], max_age: Micros) -> Self {
        let clock = ManualClock::at(Micros(1_704_067_200_000_000));
        let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
        let gated = Gated { store, gate: Arc::new(Semaphore::new(0)), calls: Arc::default() };
        let limits = scopes.iter().enumerate().map(|(index, scope)| Limit {
            name: format!("l{index}").into(),
            scope: Scope::new(scope),
            algorithm: Algorithm::fixed_window(10, Micros::from_secs(60), false, false).unwrap(),
        });
        let strategy = Strategy::new("coalesce", limits.collect(), false, FailurePolicy::Error).unwrap();
        let denials = DenialsShared::new(max_age, Monotonic::from_clock(&Clock::Manual(clock.clone())));
        let coalesce = Arc::new(Coalesce::before(denials.before(gated.clone()), &config));
        Self { gated, clock, coalesce, strategy: Arc::new(strategy) }
    }

    /// A caller on its way; it has asked before this returns.
    async fn ask(&self, consumer: &'static str, op: Op, cost: u64) -> tokio::task::JoinHandle<Answer> {
        self.ask_until(consumer, op, cost, None).await
    }

    async fn ask_until(
        &self,
        consumer: &'static str,
        op: Op,
        cost: u64,
        deadline: Option<Instant>,
    ) -> tokio::task::JoinHandle<Answer> {
        let (coalesce, strategy) = (Arc::clone(&self.coalesce), Arc::clone(&self.strategy));
        let caller = tokio::spawn(async move {
            let subject = Subject { resource: "r", consumer, ..Subject::default() };
            let decision =
                Decision { deadline: deadline.as_ref(), ..Decision::new(&strategy, subject, Op::Peek, &[]) };
            let mut out = Verdicts::default();
            coalesce.decide_one(&decision, op, &[cost], &mut out).await?;
            let (verdict, limits) = out.get(0).unwrap();
            Ok((verdict.allowed, limits[0].remaining))
        });
        settle().await;
        caller
    }

    async fn charge(&self, cost: u64) -> tokio::task::JoinHandle<Answer> {
        self.ask("bob", Op::Charge, cost).await
    }

    async fn let_through(&self, calls: usize) {
        self.gated.gate.add_permits(calls);
        settle().await;
    }

    fn calls(&self) -> Calls {
        self.gated.calls.lock().clone()
    }
}

/// Lets every other task of this thread's runtime run until it waits.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn patient() -> RedisConfig {
    RedisConfig { deadline: Micros::from_secs(60), ..RedisConfig::default() }
}

#[tokio::test]
async fn what_comes_meanwhile_is_one_call_in_the_order_it_came() {
    let world = World::new(patient());
    let first = world.charge(4).await;
    let (second, third) = (world.charge(5).await, world.charge(3).await);
    let (fourth, fifth) = (world.charge(0).await, world.charge(1).await);
    assert_eq!(world.calls(), [(Op::Charge, vec![4])]);
    world.let_through(1).await;
    assert_eq!(first.await.unwrap(), Ok((true, 6)));
    assert_eq!(world.calls()[1], (Op::Charge, vec![5, 3, 0, 1]));
    world.let_through(1).await;
    assert_eq!(second.await.unwrap(), Ok((true, 1)));
    assert_eq!(third.await.unwrap(), Ok((false, 1)), "a denial between changes nothing");
    assert_eq!(fourth.await.unwrap(), Ok((true, 1)));
    assert_eq!(fifth.await.unwrap(), Ok((true, 0)));
    // No call is in flight any more: the next question goes at once and alone.
    let last = world.charge(1).await;
    assert_eq!(world.calls()[2], (Op::Charge, vec![1]));
    world.let_through(1).await;
    assert_eq!(last.await.unwrap(), Ok((false, 0)));
}

#[tokio::test]
async fn a_look_keeps_its_place_between_charges() {
    let world = World::new(patient());
    let _first = world.charge(1).await;
    let (second, look) = (world.charge(2).await, world.ask("bob", Op::Peek, 1).await);
    let third = world.charge(3).await;
    world.let_through(4).await;
    let together = world.calls();
    assert_eq!(together[1..], [(Op::Charge, vec![2]), (Op::Peek, vec![1]), (Op::Charge, vec![3])]);
    assert_eq!(second.await.unwrap(), Ok((true, 7)));
    assert_eq!(look.await.unwrap(), Ok((true, 7)));
    assert_eq!(third.await.unwrap(), Ok((true, 4)));
}

#[tokio::test]
async fn other_keys_and_other_operations_do_not_wait() {
    let world = World::new(patient());
    let mut callers = vec![world.charge(1).await, world.ask("eve", Op::Charge, 1).await];
    callers.push(world.ask("bob", Op::Refund, 1).await);
    assert_eq!(world.calls().len(), 3);
    world.let_through(3).await;
    for caller in callers {
        assert!(caller.await.unwrap().unwrap().0);
    }
}

/// Two questions that share only some counters have no common order, so they are not coalesced.
#[tokio::test]
async fn what_shares_some_counters_is_passed_through() {
    let scopes: [&[Field]; 2] = [&[Field::Resource], &[Field::Resource, Field::Consumer]];
    let world = World::over(patient(), &scopes);
    let callers = [world.charge(1).await, world.charge(1).await];
    assert_eq!(world.calls().len(), 2);
    world.let_through(2).await;
    for caller in callers {
        assert!(caller.await.unwrap().unwrap().0);
    }
}

#[tokio::test]
async fn off_means_off() {
    let world = World::new(RedisConfig { coalesce: false, ..patient() });
    let _callers = [world.charge(1).await, world.charge(1).await];
    assert_eq!(world.calls().len(), 2);
}

/// Any caller may give up at any time. The others are still answered. No charge is made twice or for no caller.
#[tokio::test]
async fn a_caller_that_gives_up_does_not_affect_the_others() {
    let world = World::new(patient());
    let first = world.charge(1).await;
    let (second, third) = (world.charge(2).await, world.charge(3).await);
    second.abort();
    first.abort();
    settle().await;
    assert_eq!(world.calls(), [(Op::Charge, vec![1]), (Op::Charge, vec![3])]);
    let (fourth, fifth) = (world.charge(1).await, world.charge(1).await);
    third.abort();
    settle().await;
    // The aborted first call never got through; the third's was on its way, and is charged.
    world.let_through(2).await;
    assert_eq!(world.calls()[2], (Op::Charge, vec![1, 1]));
    assert_eq!(fourth.await.unwrap(), Ok((true, 6)));
    assert_eq!(fifth.await.unwrap(), Ok((true, 5)));
}

/// A call that hangs delays each caller until its own deadline at most. A caller past its deadline is not charged.
#[tokio::test]
async fn each_caller_keeps_its_own_time() {
    let at = |millis| Some(Instant::now() + Duration::from_millis(millis));
    let world = World::new(patient());
    let hangs = world.charge(1).await;
    let short = world.ask_until("bob", Op::Charge, 2, at(10)).await;
    let long = world.charge(3).await;
    assert_eq!(short.await.unwrap(), Err(StoreError::Timeout));
    assert!(!long.is_finished(), "it has a minute");
    world.let_through(2).await;
    assert_eq!(hangs.await.unwrap(), Ok((true, 9)));
    assert_eq!(long.await.unwrap(), Ok((true, 6)), "the one whose time was over is not charged");
}

/// A caller without a deadline gets the configured one.
#[tokio::test]
async fn every_wait_has_a_deadline() {
    let deadline = Duration::from_millis(100);
    let world = World::new(RedisConfig { deadline: deadline.into(), ..RedisConfig::default() });
    let hangs = world.charge(1).await;
    let began = Instant::now();
    let own = world.ask_until("bob", Op::Charge, 3, Some(began + Duration::from_secs(3600))).await;
    assert_eq!(own.await.unwrap(), Err(StoreError::Timeout));
    assert!(began.elapsed() >= deadline, "{:?}", began.elapsed());
    world.let_through(2).await;
    assert_eq!(hangs.await.unwrap(), Ok((true, 9)));
    let after = world.charge(1).await;
    assert_eq!(after.await.unwrap(), Ok((true, 8)), "the one whose time was over is not charged");
}

#[tokio::test]
async fn waiting_callers_are_bounded() {
    let world = World::new(RedisConfig { max_waiting: 2, ..patient() });
    let callers = [world.charge(1).await, world.charge(1).await, world.charge(1).await];
    assert_eq!(world.charge(1).await.await.unwrap(), Err(StoreError::Overloaded(2)));
    world.let_through(2).await;
    for caller in callers {
        assert!(caller.await.unwrap().unwrap().0);
    }
    let again = world.charge(1).await;
    world.let_through(1).await;
    assert_eq!(again.await.unwrap(), Ok((true, 6)), "their places are free again");
}

#[tokio::test]
async fn one_error_reaches_every_caller_of_the_call() {
    let world = World::new(patient());
    let first = world.charge(1).await;
    let (second, third) = (world.charge(999).await, world.charge(1).await);
    world.let_through(2).await;
    assert_eq!(first.await.unwrap(), Ok((true, 9)));
    for caller in [second, third] {
        assert_eq!(caller.await.unwrap(), Err(StoreError::Full(999)));
    }
}

/// More than fit one call go in several, one after the other.
#[tokio::test]
async fn a_call_has_a_largest_size() {
    let world = World::new(patient());
    let mut callers = Vec::new();
    for _ in 0..1100 {
        callers.push(world.charge(0).await);
    }
    world.let_through(4).await;
    for caller in callers {
        assert!(caller.await.unwrap().unwrap().0);
    }
    let sizes: Vec<usize> = world.calls().iter().map(|(_, costs)| costs.len()).collect();
    assert_eq!(sizes, [1, 512, 512, 75]);
}
