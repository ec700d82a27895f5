//! A denial that is known is answered without the store, for exactly as long as it holds.

mod costs;
mod nodes;
pub mod random;
mod valid_for;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weir_config::MemoryConfig;
use weir_core::algorithm::{Algorithm, LimitVerdict, Op, Rate, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::{Field, Strategy};
use weir_store::denials::{Denials, DenialsShared};
use weir_store::memory::MemoryStore;
use weir_store::{Answers, Decision, Store, Verdicts};
use weir_testing::DecideOne as _;
use weir_testing::stores::{OwnedDecision, known};
use weir_time::clock::{Clock, ManualClock, Monotonic};
use weir_units::{Micros, Retry};

use crate::support::Counting;
use futures_util::FutureExt as _;

pub(super) const START: Micros = Micros(1_704_067_200_000_000);
const SECOND: u64 = 1_000_000;

/// A store behind the denials of two workers of one node, on one clock.
struct Node {
    clock: ManualClock,
    asked: Arc<AtomicUsize>,
    workers: [Denials<Counting>; 2],
}

impl Node {
    fn new(max_age: Micros) -> Self {
        let clock = ManualClock::at(START);
        let shared = Clock::Manual(clock.clone());
        let asked = Arc::new(AtomicUsize::new(0));
        let store = Counting(MemoryStore::new(&MemoryConfig::default(), shared.clone()), Arc::clone(&asked));
        let denials = DenialsShared::new(max_age, Monotonic::from_clock(&shared));
        Self { clock, asked, workers: [denials.before(store.clone()), denials.before(store)] }
    }

    /// One decision by a worker, `at` microseconds after the start, and whether the store was asked.
    async fn ask(
        &self,
        worker: usize,
        s: &Arc<Strategy>,
        op: Op,
        cost: u64,
        at: u64,
    ) -> (Verdict, LimitVerdict, bool) {
        self.clock.set(Micros(START.0 + at));
        let before = self.asked.load(SeqCst);
        let subject = Subject { resource: "r", consumer: "c", ..Subject::default() };
        let costs = [cost];
        let decision = Decision::new(s, subject, op, &costs);
        let mut out = Verdicts::default();
        let known = known(&self.workers[worker], &decision);
        let is_known = known.is_some();
        self.workers[worker].decide_one(&decision, op, &[cost], &mut out).await.unwrap();
        let asked = self.asked.load(SeqCst) > before;
        // The cache lookup gives the same answer as the decision, and it finds one whenever the store is not asked.
        assert_eq!(is_known, !asked);
        if let Some(known) = known {
            assert_eq!((known.decisions, &known.limits), (out.decisions.clone(), &out.limits));
        }
        (out.decisions[0], out.limits[0], asked)
    }
}

/// Two keys of a flood once pushed each other out at every call, as soon as they had one place together.
#[tokio::test]
async fn a_flood_of_many_keys_is_known() {
    const KEYS: usize = 4_000;
    let (node, gate) = (Node::new(Micros::from_secs(60)), strategy(&[uniform(3_600)]));
    let mut asked = Vec::new();
    for _ in 0..4 {
        for key in 0..KEYS {
            let consumer = key.to_string();
            let subject = Subject { resource: "r", consumer: &consumer, ..Subject::default() };
            let decision = Decision::new(&gate, subject, Op::Peek, &[]);
            let mut out = Verdicts::default();
            node.workers[0].decide_one(&decision, Op::Charge, &[1], &mut out).await.unwrap();
        }
        asked.push(node.asked.swap(0, SeqCst));
    }
    // The first charge of a key passes and may end what is known of another, so the third round counts.
    assert_eq!(asked[..2], [KEYS, KEYS]);
    assert!(asked[2..].iter().all(|&asked| asked < KEYS / 50), "{asked:?}");
}

#[tokio::test]
async fn a_denial_is_asked_once_and_its_wait_grows_shorter() {
    let (node, gate) = (Node::new(Micros::from_secs(60)), strategy(&[uniform(10)]));
    assert!(node.ask(0, &gate, Op::Charge, 1, 0).await.0.allowed);
    let (denied, limit, asked) = node.ask(0, &gate, Op::Charge, 1, SECOND).await;
    assert!(!denied.allowed && asked);
    assert_eq!(limit.retry, Retry::After(Micros(9 * SECOND)));
    for at in [2 * SECOND, 5 * SECOND, 10 * SECOND - 1] {
        let (denied, limit, asked) = node.ask(0, &gate, Op::Charge, 1, at).await;
        assert!(!denied.allowed && !asked, "{at}");
        assert_eq!(limit.retry, Retry::After(Micros(10 * SECOND - at)));
        assert_eq!(limit.reset_after, Micros(10 * SECOND - at));
        assert_eq!(denied.now, Micros(START.0 + at));
    }
    let (allowed, _, asked) = node.ask(0, &gate, Op::Charge, 1, 10 * SECOND).await;
    assert!(allowed.allowed && asked, "nobody who waits is denied");
}

/// A look at every call is worth its cost while one in nine finds something.
#[tokio::test]
async fn looking_before_a_call_begins_is_given_up_where_nothing_is_found() {
    let (node, gate) = (Node::new(Micros::from_secs(60)), strategy(&[uniform(10)]));
    let knows_some = || node.workers[0].knows_some();
    assert!(!knows_some());
    for at in 0..3 {
        node.ask(0, &gate, Op::Charge, 1, at).await;
    }
    assert!(knows_some());
    let other = strategy(&[bucket(1_000)]);
    for _ in 0..100 {
        node.ask(0, &other, Op::Charge, 1, 3).await;
    }
    assert!(!knows_some());
}

#[tokio::test]
async fn nothing_is_known_for_longer_than_the_configured_age() {
    let (node, gate) = (Node::new(Micros::from_secs(2)), strategy(&[uniform(10)]));
    assert!(node.ask(0, &gate, Op::Charge, 1, 0).await.0.allowed);
    assert!(node.ask(0, &gate, Op::Charge, 1, 0).await.2);
    assert!(!node.ask(0, &gate, Op::Charge, 1, 2 * SECOND - 1).await.2);
    assert!(node.ask(0, &gate, Op::Charge, 1, 2 * SECOND).await.2);
    let (never, limit, _) = node.ask(0, &gate, Op::Charge, 9, 2 * SECOND).await;
    assert!(!never.allowed && limit.retry == Retry::Never);
    assert!(!node.ask(0, &gate, Op::Charge, 9, 2 * SECOND + 9_999).await.2, "never is known too");
    assert!(node.ask(0, &gate, Op::Charge, 9, 2 * SECOND + 10_000).await.2, "but more may remain meanwhile");
}

#[tokio::test]
async fn off_and_counting_strategies_are_asked_every_time() {
    let (off, gate) = (Node::new(Micros::ZERO), strategy(&[uniform(10)]));
    let window = Algorithm::fixed_window(1, Micros::from_secs(10), false, true).unwrap();
    let (node, counting) = (Node::new(Micros::from_secs(60)), strategy(&[window]));
    for _ in 0..3 {
        assert!(off.ask(0, &gate, Op::Charge, 1, 0).await.2);
        assert!(node.ask(0, &counting, Op::Charge, 1, 0).await.2);
    }
}

/// A memory store whose answers are lost.
struct Lost(MemoryStore);

impl Store for Lost {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions.iter().map(OwnedDecision::new) {
            let memory = self.0.clone();
            answers.later(async move {
                decision.ask(&memory).await?;
                std::future::pending().await
            });
        }
    }
}

/// The caller has gone before the answer arrives. The cache must not hide the change from others.
#[tokio::test]
async fn a_charge_whose_caller_has_gone_is_not_hidden() {
    let shared = Clock::Manual(ManualClock::at(START));
    let memory = MemoryStore::new(&MemoryConfig::default(), shared.clone());
    let denials = DenialsShared::new(Micros::from_secs(60), Monotonic::from_clock(&shared));
    let (worker, other) = (denials.before(memory.clone()), denials.before(Lost(memory)));
    let bucket = strategy(&[bucket(10)]);
    let subject = Subject { resource: "r", consumer: "c", ..Subject::default() };
    let decision = Decision::new(&bucket, subject, Op::Peek, &[]);
    let ask = async |cost| {
        let mut out = Verdicts::default();
        worker.decide_one(&decision, Op::Charge, &[cost], &mut out).await.unwrap();
        (out.decisions[0].allowed, out.limits[0].remaining)
    };
    assert_eq!(ask(8).await, (true, 2));
    assert_eq!(ask(3).await, (false, 2));
    let mut out = Verdicts::default();
    assert!(other.decide_one(&decision, Op::Charge, &[1], &mut out).now_or_never().is_none());
    assert_eq!(ask(3).await, (false, 1));
    assert!(other.decide_one(&decision, Op::Refund, &[2], &mut out).now_or_never().is_none());
    assert_eq!(ask(3).await, (true, 0));
}

/// Redis executes a charge or a refund before its caller gets the answer. In between, one worker could show the new
/// state, and later another worker the older cached one.
#[tokio::test]
async fn no_answer_is_older_than_one_that_a_caller_has_seen() {
    let shared = Clock::Manual(ManualClock::at(START));
    let memory = MemoryStore::new(&MemoryConfig::default(), shared.clone());
    let denials = DenialsShared::new(Micros::from_secs(60), Monotonic::from_clock(&shared));
    let asked = Arc::new(AtomicUsize::new(0));
    let worker = || denials.before(Counting(memory.clone(), Arc::clone(&asked)));
    let (worker, other, slow) = (worker(), worker(), denials.before(Lost(memory.clone())));
    let bucket = strategy(&[bucket(10)]);
    let subject = Subject { resource: "r", consumer: "c", ..Subject::default() };
    let decision = Decision::new(&bucket, subject, Op::Peek, &[]);
    let ask = async |worker: &Denials<Counting>, op, cost| {
        let mut out = Verdicts::default();
        worker.decide_one(&decision, op, &[cost], &mut out).await.unwrap();
        (out.decisions[0].allowed, out.limits[0].remaining)
    };
    assert_eq!(ask(&worker, Op::Charge, 8).await, (true, 2));
    assert_eq!(ask(&worker, Op::Charge, 4).await, (false, 2));
    let (mut first, mut second) = (Verdicts::default(), Verdicts::default());
    let mut charge = Box::pin(slow.decide_one(&decision, Op::Charge, &[1], &mut first));
    assert!(charge.as_mut().now_or_never().is_none());
    assert_eq!(ask(&worker, Op::Charge, 4).await, (false, 2), "no worker has seen the change");
    assert_eq!(ask(&other, Op::Charge, 3).await, (false, 1));
    assert_eq!(ask(&worker, Op::Charge, 4).await, (false, 1));
    asked.store(0, SeqCst);
    assert_eq!(ask(&worker, Op::Charge, 4).await, (false, 1));
    assert_eq!(asked.swap(0, SeqCst), 0, "it is known all the same");
    let mut refund = Box::pin(slow.decide_one(&decision, Op::Refund, &[3], &mut second));
    assert!(refund.as_mut().now_or_never().is_none());
    assert_eq!(ask(&worker, Op::Charge, 4).await, (false, 1), "no worker has seen the change");
    assert_eq!(ask(&other, Op::Peek, 4).await, (true, 4));
    assert_eq!(ask(&worker, Op::Charge, 4).await, (true, 0));
}

/// A strategy of a changed configuration may lie where the old one did.
#[tokio::test]
async fn a_strategy_is_not_known_by_its_place_in_memory() {
    let node = Node::new(Micros::from_secs(60));
    assert!(node.ask(0, &strategy(&[bucket(2)]), Op::Charge, 2, 0).await.0.allowed);
    for round in 0..100 {
        assert!(node.ask(0, &strategy(&[bucket(2)]), Op::Charge, 1, 0).await.2, "{round}");
    }
}

/// An override has the names and keys of its strategy: what one denies the other may admit.
#[tokio::test]
async fn other_numbers_are_another_question() {
    let node = Node::new(Micros::from_secs(60));
    let (small, large) = (strategy(&[bucket(2)]), strategy(&[bucket(9)]));
    assert!(node.ask(0, &small, Op::Charge, 2, 0).await.0.allowed);
    assert!(!node.ask(0, &small, Op::Charge, 1, 0).await.0.allowed);
    assert!(node.ask(0, &large, Op::Charge, 1, 0).await.0.allowed);
}

/// Of two limits the one with the shorter wait admits again while the other still denies.
#[tokio::test]
async fn each_limit_ages_by_itself() {
    let (node, both) = (Node::new(Micros::from_secs(60)), strategy(&[uniform(2), uniform(10)]));
    assert!(node.ask(0, &both, Op::Charge, 1, 0).await.0.allowed);
    let (_, first, _) = node.ask(0, &both, Op::Charge, 1, 0).await;
    assert_eq!((first.fits(), first.remaining), (false, 0));
    let (_, first, asked) = node.ask(0, &both, Op::Charge, 1, 2 * SECOND - 1).await;
    assert_eq!((asked, first.retry), (false, Retry::After(Micros(1))));
    // From here on another node may charge the first one, where it counts by other fields.
    let (denied, _, asked) = node.ask(0, &both, Op::Charge, 1, 2 * SECOND).await;
    assert!(!denied.allowed && asked);
    let (denied, first, asked) = node.ask(0, &both, Op::Charge, 1, 3 * SECOND).await;
    assert!(!denied.allowed && !asked);
    assert_eq!((first.fits(), first.remaining, first.retry), (true, 1, Retry::Now));
    assert_eq!(first.reset_after, Micros::ZERO);
}

fn uniform(seconds: u64) -> Algorithm {
    Algorithm::uniform(Micros::from_secs(seconds)).unwrap()
}

fn bucket(burst: u64) -> Algorithm {
    Algorithm::bucket(burst, Rate { count: 1, period: Micros::from_secs(1) }).unwrap()
}

fn strategy(algorithms: &[Algorithm]) -> Arc<Strategy> {
    weir_testing::rules::numbered("denials", &[Field::Resource, Field::Consumer], algorithms)
}
