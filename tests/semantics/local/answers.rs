//! The states that a node begins with when it has to decide, the states that it forgets, and the calls that it does
//! not decide.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, Op, Rate, Share};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, LocalPolicy, Strategy, WhenLocalFull};
use weir_store::local::{LocalFallback, LocalShared};
use weir_store::{Decision, LimitSet, Part, StoreError, Verdicts, at_once, decide_one};
use weir_testing::rules;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::cluster::{Does, FailingStore};

const BEGIN: Micros = Micros(1_704_067_200_000_000);
const MINUTE: Micros = Micros::from_secs(60);

/// A node in front of a store that fails when it is told to.
struct Node {
    clock: ManualClock,
    store: FailingStore,
    shared: LocalShared,
    node: LocalFallback<FailingStore>,
}

impl Node {
    fn new(budget: usize) -> Self {
        let clock = ManualClock::at(BEGIN);
        let store = FailingStore::new(&clock);
        let shared = LocalShared::new(budget, Clock::Manual(clock.clone()));
        let node = shared.before(store.clone());
        Self { clock, store, shared, node }
    }

    fn ask(
        &self,
        strategy: &Arc<Strategy>,
        consumer: &str,
        op: Op,
        cost: u64,
    ) -> Result<Verdicts, StoreError> {
        self.ask_part(strategy, consumer, op, cost, &Part::ALL)
    }

    fn ask_part(
        &self,
        strategy: &Arc<Strategy>,
        consumer: &str,
        op: Op,
        cost: u64,
        part: &Part<'_>,
    ) -> Result<Verdicts, StoreError> {
        let subject = Subject { resource: "r", consumer, ..Subject::default() };
        let part = (*part != Part::ALL).then_some(part);
        let costs = [cost];
        let decision = Decision { part, ..Decision::new(strategy, subject, op, &costs) };
        at_once(decide_one(&self.node, &decision).verdicts()).expect("it answers at once")
    }

    /// Charges, and returns whether the node decided, whether it allowed, and what remains of the first limit.
    fn charge(&self, strategy: &Arc<Strategy>, cost: u64) -> (bool, bool, u64) {
        let verdicts = self.ask(strategy, "c", Op::Charge, cost).unwrap();
        (verdicts.local.is_some(), verdicts.decisions[0].allowed, verdicts.limits[0].remaining)
    }

    fn advance(&self, micros: u64) {
        self.clock.set(Micros(self.clock.now().0 + micros));
    }
}

fn window(limit: u64) -> Algorithm {
    Algorithm::fixed_window(limit, MINUTE, false, false).unwrap()
}

fn strategy(share: (u16, u16), limits: &[(&str, &[Field], Algorithm)]) -> Arc<Strategy> {
    let share = Share::new(share.0, share.1).unwrap();
    let policy = FailurePolicy::Local(LocalPolicy { share, when_full: WhenLocalFull::Deny });
    Arc::new(rules::strategy("s", limits, policy).with_local().unwrap())
}

fn each(share: (u16, u16), algorithm: Algorithm) -> Arc<Strategy> {
    strategy(share, &[("each", &[Field::Consumer], algorithm)])
}

#[test]
fn it_begins_where_the_store_stood_and_counts_on_in_the_next_outage() {
    let (node, half) = (Node::new(1 << 20), each((1, 2), window(8)));
    assert_eq!(node.charge(&half, 5), (false, true, 3));
    node.store.next(Does::Nothing);
    // ⌈5 / 2⌉ of 4 are used.
    assert_eq!(node.charge(&half, 1), (true, true, 0));
    assert_eq!(node.charge(&half, 1), (true, false, 0));
    node.store.next(Does::Answers);
    assert_eq!(node.charge(&half, 1), (false, true, 2), "what was decided here is not sent");
    node.store.next(Does::Nothing);
    assert_eq!(node.charge(&half, 1), (true, false, 0), "a second outage is no refill");
    node.advance(MINUTE.0);
    assert_eq!(node.charge(&half, 1), (true, true, 3), "the next window is another one");
    assert_eq!(node.shared.stats().decided, 4);
}

/// A known state never lowers the use here, and is charged up to the smaller limit at most.
#[test]
fn what_is_known_only_adds() {
    let (node, half) = (Node::new(1 << 20), each((1, 2), window(8)));
    node.store.next(Does::Nothing);
    assert_eq!(node.charge(&half, 3), (true, true, 1));
    node.store.next(Does::Answers);
    assert_eq!(node.charge(&half, 1), (false, true, 7));
    node.store.next(Does::Nothing);
    assert_eq!(node.charge(&half, 1), (true, true, 0), "one used there is less than three here");
    node.store.next(Does::Answers);
    assert_eq!(node.charge(&half, 7), (false, true, 0));
    node.store.next(Does::Nothing);
    let denied = node.ask(&half, "c", Op::Charge, 1).unwrap();
    assert_eq!(denied.limits[0].level_before, 4, "no debt");
}

/// A bucket is charged once for what was used in the store, and drains from then on.
#[test]
fn a_bucket_drains_while_the_store_is_away() {
    let second = Micros::from_secs(1);
    let bucket = Algorithm::bucket(10, Rate { count: 10, period: Micros::from_secs(10) }).unwrap();
    let (node, half) = (Node::new(1 << 20), each((1, 2), bucket));
    assert_eq!(node.charge(&half, 10), (false, true, 0));
    node.store.next(Does::Nothing);
    assert_eq!(node.charge(&half, 1), (true, false, 0));
    for _ in 0..3 {
        node.advance(2 * second.0);
        assert_eq!(node.charge(&half, 1), (true, true, 0), "half of one a second");
    }
}

/// A limit of several is known by itself: a counter for all is known from any consumer's call.
#[test]
fn each_limit_is_known_by_its_own_key() {
    let limits: [(&str, &[Field], Algorithm); 2] =
        [("all", &[Field::Resource], window(100)), ("each", &[Field::Resource, Field::Consumer], window(40))];
    let (node, quarter) = (Node::new(1 << 20), strategy((1, 4), &limits));
    node.ask(&quarter, "a", Op::Charge, 40).unwrap();
    node.ask(&quarter, "b", Op::Charge, 20).unwrap();
    node.store.next(Does::Nothing);
    let other = node.ask(&quarter, "c", Op::Charge, 1).unwrap();
    let remaining: Vec<u64> = other.limits.iter().map(|one| one.remaining).collect();
    assert_eq!(remaining, [25 - 15 - 1, 10 - 1]);
    let first = node.ask(&quarter, "a", Op::Charge, 1).unwrap();
    assert!(!first.decisions[0].allowed && first.limits[1].remaining == 0 && first.limits[0].fits());
}

#[test]
fn a_refund_a_reset_and_another_configuration_forget_what_is_known() {
    let begin = |change: &dyn Fn(&Node, &Arc<Strategy>) -> Arc<Strategy>| {
        let (node, half) = (Node::new(1 << 20), each((1, 2), window(8)));
        node.charge(&half, 8);
        let then = change(&node, &half);
        node.store.next(Does::Nothing);
        node.charge(&then, 1).2
    };
    let same = |op: Op| {
        move |node: &Node, strategy: &Arc<Strategy>| {
            node.ask(strategy, "c", op, 1).unwrap();
            Arc::clone(strategy)
        }
    };
    assert_eq!(begin(&|_, strategy| Arc::clone(strategy)), 0, "it is known");
    assert_eq!(begin(&same(Op::Peek)), 0, "a peek tells the same");
    assert_eq!(begin(&same(Op::Refund)), 3);
    assert_eq!(begin(&same(Op::Reset)), 3);
    assert_eq!(begin(&|_, _| each((1, 2), window(8))), 3, "another id");
    let raised = |_: &Node, strategy: &Arc<Strategy>| {
        let mut raised = Strategy::clone(strategy);
        raised.override_limit("each", window(20)).unwrap();
        Arc::new(raised)
    };
    assert_eq!(begin(&raised), 5, "an override is known with its strategy: 4 of 10, and 1");
}

#[test]
fn refunds_go_to_the_node_while_the_store_is_away() {
    let (node, half) = (Node::new(1 << 20), each((1, 2), window(8)));
    node.store.next(Does::Nothing);
    assert_eq!(node.charge(&half, 4), (true, true, 0));
    let refunded = node.ask(&half, "c", Op::Refund, 3).unwrap();
    assert!(refunded.local.is_some() && refunded.decisions[0].applied);
    assert_eq!(refunded.limits[0].remaining, 3);
    node.store.next(Does::Answers);
    assert_eq!(node.charge(&half, 1), (false, true, 7), "the store does not hear of it");
}

#[test]
fn what_has_an_id_or_is_due_later_is_an_error() {
    let part = |id: &'static str| Part { limits: LimitSet::ALL, id };
    let (node, half) = (Node::new(1 << 20), each((1, 2), window(8)));
    let bucket = each((1, 2), Algorithm::bucket(8, Rate { count: 1, period: MINUTE }).unwrap());
    let slots = each((1, 2), Algorithm::bucketed_window(8, MINUTE, 60, true).unwrap());
    node.store.next(Does::Nothing);
    for (strategy, op, part) in [
        (&half, Op::Charge, part("id")),
        (&half, Op::AtMost, part("id")),
        (&half, Op::Refund, part("id")),
        (&half, Op::Force, Part::ALL),
        (&half, Op::Reset, Part::ALL),
        (&bucket, Op::Reserve { max_wait: MINUTE }, Part::ALL),
        (&bucket, Op::Cancel, part("id")),
        (&slots, Op::Count { parts: 3 }, Part::ALL),
    ] {
        let answer = node.ask_part(strategy, "c", op, 1, &part);
        assert_eq!(answer.unwrap_err(), StoreError::Timeout, "{op:?}");
    }
    for op in [Op::Charge, Op::Peek, Op::AtMost] {
        assert!(node.ask(&half, "c", op, 1).unwrap().local.is_some(), "{op:?}");
    }
    // A mistake of the caller stays one.
    let denied = Algorithm::fixed_window(8, MINUTE, false, true).unwrap();
    node.store.next(Does::Answers);
    let answer = node.ask(&each((1, 2), denied), "c", Op::AtMost, 1);
    assert!(matches!(answer, Err(StoreError::Unsupported(_))), "{answer:?}");
}

/// Also a debit, and what counts denied attempts, tell how much was used.
#[test]
fn all_that_is_charged_is_known() {
    let counts_denied = Algorithm::fixed_window(8, MINUTE, false, true).unwrap();
    for (algorithm, op, costs, left) in [
        (window(8), Op::Force, &[6][..], 1),
        (window(8), Op::AtMost, &[5, 9], 0),
        (counts_denied, Op::Charge, &[4, 5], 0),
        (window(8), Op::Charge, &[4, 5], 2),
    ] {
        let (node, half) = (Node::new(1 << 20), each((1, 2), algorithm));
        for &cost in costs {
            node.ask(&half, "c", op, cost).unwrap();
        }
        node.store.next(Does::Nothing);
        let peeked = node.ask(&half, "c", Op::Peek, 0).unwrap();
        assert_eq!(peeked.limits[0].remaining, left, "{op:?} {costs:?}");
    }
}

/// States that still count are never evicted; when they fill the budget, new keys are refused and old ones go on.
#[test]
fn a_full_budget_refuses_new_keys_and_keeps_the_old_ones() {
    let budget = 1 << 20;
    let (node, half) = (Node::new(budget), each((1, 2), window(8)));
    node.store.next(Does::Nothing);
    assert_eq!(node.charge(&half, 3), (true, true, 1));
    let refused = (0..50_000).find_map(|n| node.ask(&half, &format!("{n}"), Op::Charge, 1).err());
    assert_eq!(refused, Some(StoreError::LocalFull(budget)));
    assert_eq!(node.charge(&half, 1), (true, true, 0));
    let stats = node.shared.stats();
    assert!(stats.states.bytes <= budget && stats.states.evictions == 0, "{stats:?}");
    // What is known of a key that found no room stays known.
    node.store.next(Does::Answers);
    let fresh = |n: u64| format!("later-{n}");
    (0..100).for_each(|n| drop(node.ask(&half, &fresh(n), Op::Charge, 8)));
    node.store.next(Does::Nothing);
    assert_eq!(node.shared.stats().known, 100);
    (0..100).for_each(|n| drop(node.ask(&half, &fresh(n), Op::Charge, 1)));
    node.advance(2 * MINUTE.0);
    node.shared.sweep();
    assert!(node.ask(&half, "new", Op::Charge, 1).is_ok(), "expired states make room");
}
