//! Rust = Lua, bit for bit. The pure driver and a real Redis get the same random calls and must answer the same.
//! Between the calls the clock moves forwards and back, and limits change.
//!
//! A case that differs is shrunk to the shortest list of calls, and kept beside this file.

mod once;
mod shadow;
mod together;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_testing::DecideOne as _;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use weir_config::Topology;
use weir_core::algorithm::{Algorithm, LimitVerdict, MAX_LIMITS, Op, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field};
use weir_store::redis::RedisStore;
use weir_store::{Decision, Verdicts};
use weir_time::clock::{Clock, ManualClock};
use weir_units::{CEILING, Micros};

use crate::properties::machine::{Named, START};
use crate::properties::random::{self, Cost, Pause, Step};
use crate::support;

type Rules = Arc<weir_core::strategy::Strategy>;

/// Two configurations of the same limits, and the calls.
#[derive(Debug, Clone)]
struct Story {
    limits: Vec<(Algorithm, Algorithm)>,
    calls: Vec<Call>,
}

/// One call of a store: costs in order, all at one time.
#[derive(Debug, Clone)]
struct Call {
    step: Step,
    clock: ClockStep,
    more_costs: Vec<Cost>,
    /// True if the second configuration is in force.
    changed: bool,
}

/// A step of the clock before a call, beside the step's own pause.
#[derive(Debug, Clone, Copy)]
enum ClockStep {
    None,
    Back(u64),
    /// Back by the last answer's `reset_after`, or a microsecond less or more: the edge of being moved.
    BackByReset(i8),
    To(u64),
}

#[test]
fn redis() {
    let redis = support::shared_redis();
    tell_stories(1, vec![redis.url()], Topology::Single);
}

#[test]
fn cluster() {
    let cluster = support::shared_cluster();
    tell_stories(8, cluster.urls(), Topology::Cluster);
}

/// A log with as many entries as there may be: what comes then joins the newest.
#[test]
fn a_log_that_is_full() {
    let limit = Algorithm::sliding_log(10_000, Micros::from_secs(1)).unwrap();
    let forced = |cost, times| vec![call_after(1, Op::Force, cost, &[]); times];
    let again = [Pause::Share(65_535), Pause::Exactly(8_000), Pause::Exactly(2_100), Pause::Reset(-1)];
    let later = again.map(|pause| Call {
        step: Step { pause, op: Op::Charge, cost: Cost::Remaining(0) },
        clock: ClockStep::None,
        more_costs: vec![Cost::Exactly(0), Cost::Limit(0)],
        changed: false,
    });
    let calls = [forced(1, 9_998), forced(3, 5), later.to_vec()].concat();
    let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
    world.tell(&Story { limits: vec![(limit, limit)], calls }).unwrap();
}

/// A log of so many entries that those which no longer count, and the one that frees enough, are searched for.
#[test]
fn a_log_of_many_entries() {
    let limit = Algorithm::sliding_log(300, Micros::from_secs(1)).unwrap();
    let mut calls = Vec::new();
    for round in 0..3 {
        calls.extend((0..150).map(|number| call_after(1_000 + number, Op::Charge, 1 + number % 3, &[])));
        for pause in [0, 1_000, 2_000, 3_000, 40_000, 1] {
            calls.extend([1, 2, 7, 64, 150, 299].map(|cost| call_after(pause, Op::Peek, cost, &[])));
            calls.extend([300, 2, 291, 5].map(|cost| call_after(pause, Op::Charge, cost, &[])));
            calls.push(call_after(pause, Op::Charge, 3, &[3, 3, 3]));
            calls.push(call_after(pause, Op::Charge, 1, &[200, 3, 0, 9]));
        }
        calls.push(call_after(870_000 + round * 70_000, Op::Charge, 1, &[]));
    }
    // Some at a time leave, to the microsecond.
    calls.push(call_after(5_000_000, Op::Charge, 1, &[]));
    calls.extend((0..50).map(|_| call_after(10_000, Op::Charge, 1, &[])));
    calls.push(call_after(490_000, Op::Charge, 1, &[]));
    for leaving in [1, 2, 3, 4, 2, 7, 9] {
        calls.push(call_after(10_000 * leaving - 1, Op::Peek, 290, &[]));
        calls.push(call_after(1, Op::Peek, 290, &[]));
        calls.push(call_after(0, Op::Charge, 1, &[]));
    }
    let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
    world.tell(&Story { limits: vec![(limit, limit)], calls }).unwrap();
}

/// A log that holds as many reservations as it may, of which some, and then all, are due.
#[test]
fn a_log_that_holds_many() {
    let limits = [3, 100].map(|held| Algorithm::held_log(300, Micros::from_secs(1), held).unwrap());
    let reserve = Op::Reserve { max_wait: Micros::from_secs(1) };
    let mut calls = Vec::new();
    for (pause, in_force) in [(1_000, false), (3_000_000, true), (3_000_000, false), (3_000_000, true)] {
        let mut round = vec![call_after(pause, Op::Charge, 1, &[])];
        round.extend((0..149).map(|number| call_after(3_000, Op::Charge, 1 + number % 2, &[])));
        round.extend((0..104).map(|number| call_after(number % 3 * 100, reserve, number % 4, &[])));
        for pause in [0, 500_000, 4_000, 3_000, 90_000, 1_000, 400_000] {
            round.extend(
                [(reserve, 1), (Op::Charge, 1), (Op::Refund, 7), (Op::Peek, 3), (reserve, 2)]
                    .map(|(op, cost)| call_after(pause, op, cost, &[])),
            );
        }
        calls.extend(round.into_iter().map(|call| Call { changed: in_force, ..call }));
    }
    let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
    world.tell(&Story { limits: vec![(limits[0], limits[1])], calls }).unwrap();
}

/// Slots that stop to count one by one, several at a time, and all.
#[test]
fn a_window_of_many_slots() {
    let limit = Algorithm::bucketed_window(16, Micros::from_millis(600), 60, false).unwrap();
    // To the microsecond when a slot begins, and then anywhen.
    let mut calls = vec![call_after(10_000 - START % 10_000, Op::Charge, 1, &[])];
    calls.extend(
        (0..90).map(|number| call_after(number * 7_919 % 13 * 10_000, Op::Charge, 1 + number % 3, &[])),
    );
    calls.extend((0..600).map(|number| match number % 10 {
        0 => call_after(number * 7_919 % 90_001, Op::Charge, 1, &[]),
        3 => call_after(number * 7_919 % 1_009, Op::Charge, 2, &[1, 9]),
        5 => call_after(0, Op::Peek, number % 17, &[1, 16]),
        9 if number % 200 == 199 => call_after(598_000 + number, Op::Charge, 1, &[]),
        _ => call_after(number * 7_919 % 10_007, Op::Charge, number % 3, &[]),
    }));
    let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
    world.tell(&Story { limits: vec![(limit, limit)], calls }).unwrap();
}

/// The same of so many parts that only those with hits are stored.
#[test]
fn a_window_of_many_sparse_parts() {
    for (buckets, strict) in [(400, false), (3_600, true)] {
        let limit = Algorithm::bucketed_window(900, Micros(buckets * 10_000), buckets, strict).unwrap();
        let mut calls = vec![call_after(10_000 - START % 10_000, Op::Charge, 1, &[])];
        calls.extend((0..900).map(|number| match number % 11 {
            0 => call_after(number * 7_919 % 900_001, Op::Charge, 1, &[]),
            3 => call_after(number * 7_919 % 1_009, Op::Charge, 2, &[1, 9]),
            5 => call_after(0, Op::Peek, number % 800, &[1, 16]),
            7 => call_after(10_000 * (number % 70), Op::Refund, 1 + number % 9, &[]),
            9 => call_after(number * 7_919 % 50_021, Op::Count { parts: 1 + number * 13 % buckets }, 0, &[]),
            10 if number % 200 == 199 => call_after(buckets * 10_000 - 2_000 + number, Op::Charge, 1, &[]),
            _ => call_after(number * 7_919 % 20_011, Op::Charge, number % 4, &[]),
        }));
        let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
        world.tell(&Story { limits: vec![(limit, limit)], calls }).unwrap();
    }
}

/// Refunds of a log that stands too far ahead: entries go, and the others are moved.
#[test]
fn a_log_that_is_moved_while_it_is_pulled() {
    let limit = Algorithm::sliding_log(6, Micros(4)).unwrap();
    let charges = [
        call_after(0, Op::Charge, 1, &[]),
        call_after(1, Op::Charge, 2, &[]),
        call_after(1, Op::Charge, 1, &[]),
    ];
    let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
    for given_back in 1..=4 {
        let back = Call { clock: ClockStep::Back(7), ..call_after(0, Op::Refund, given_back, &[]) };
        let calls =
            [&charges[..], &[back, call_after(0, Op::Peek, 6, &[]), call_after(1, Op::Charge, 6, &[])]]
                .concat();
        world.tell(&Story { limits: vec![(limit, limit)], calls }).unwrap();
    }
}

/// Two windows of which one is full of debt, read as one under another length and then moved.
#[test]
fn windows_that_hold_more_than_one_can() {
    let limits = [66, 1].map(|span| Algorithm::sliding_window(3, Micros(span)).unwrap());
    let debt = call_after(66 + 22, Op::Force, CEILING / 2, &[]);
    let changed = |call| Call { changed: true, ..call };
    let back = Call { clock: ClockStep::Back(500), ..changed(call_after(0, Op::Charge, 1, &[])) };
    let calls = vec![
        call_after(66 - START % 66, Op::Force, 3, &[]),
        debt,
        back,
        changed(call_after(1, Op::Charge, 1, &[])),
    ];
    let mut world = World::new(vec![support::shared_redis().url()], Topology::Single);
    world.tell(&Story { limits: vec![(limits[0], limits[1])], calls }).unwrap();
}

fn call_after(pause: u64, op: Op, cost: u64, more: &[u64]) -> Call {
    let step = Step { pause: Pause::Exactly(pause), op, cost: Cost::Exactly(cost) };
    let more_costs = more.iter().map(|&cost| Cost::Exactly(cost)).collect();
    Call { step, clock: ClockStep::None, more_costs, changed: false }
}

/// Runs one `share`th of the usual number of random cases.
fn tell_stories(share: u32, nodes: Vec<String>, topology: Topology) {
    let mut world = World::new(nodes, topology);
    random::tell(file!(), share, &story(), |story| world.tell(&story));
}

/// A store on a runtime and a clock of its own.
pub struct World {
    pub runtime: tokio::runtime::Runtime,
    pub clock: ManualClock,
    pub store: RedisStore,
}

impl World {
    pub fn new(nodes: Vec<String>, topology: Topology) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clock = ManualClock::at(Micros(START));
        let store = runtime.block_on(support::redis_store(nodes, topology, Clock::Manual(clock.clone())));
        Self { runtime, clock, store }
    }

    /// Runs the calls on both, under unused keys. Returns how many decisions were compared.
    fn tell(&mut self, story: &Story) -> Result<usize, TestCaseError> {
        static STORIES: AtomicU64 = AtomicU64::new(0);
        let consumer = format!("story {}", STORIES.fetch_add(1, Ordering::Relaxed));
        let subject = Subject { resource: "differential", consumer: &consumer, ..Subject::default() };
        let configurations = [story.rules(|limit| limit.0), story.rules(|limit| limit.1)];
        let mut pure = Named::new(&configurations[0]);
        let mut decisions = 0;
        for (number, call) in story.calls.iter().enumerate() {
            let rules = &configurations[usize::from(call.changed)];
            pure.machine.limits = rules.algorithms().to_vec();
            let (op, first) = pure.machine.advance(&call.step);
            call.clock.apply(&mut pure);
            let mut costs = vec![first];
            costs.extend(call.more_costs.iter().map(|&cost| pure.machine.cost(cost)));
            self.clock.set(pure.machine.now);
            let decision = Decision::new(rules, subject, Op::Peek, &[]);
            let mut out = Verdicts::default();
            self.runtime.block_on(self.store.decide_one(&decision, op, &costs, &mut out)).unwrap();
            for (index, &cost) in costs.iter().enumerate() {
                agree(&mut pure, rules, &subject, (op, cost), out.get(index), number)?;
                decisions += 1;
            }
        }
        Ok(decisions)
    }
}

/// Asserts that Lua says of this cost what Rust says.
fn agree(
    pure: &mut Named,
    rules: &Rules,
    subject: &Subject<'_>,
    (op, cost): (Op, u64),
    said: Option<(&Verdict, &[LimitVerdict])>,
    number: usize,
) -> Result<(), TestCaseError> {
    let expected = pure.decide(rules, subject, op, cost);
    let (number, now) = (number + 1, pure.machine.now.0);
    prop_assert_eq!(
        said.unwrap(),
        (&expected.verdict, &expected.limits[..]),
        "call {} ({:?} of {} at {}): Lua is left, Rust right",
        number,
        op,
        cost,
        now
    );
    Ok(())
}

impl Story {
    fn rules(&self, of: impl Fn(&(Algorithm, Algorithm)) -> Algorithm) -> Rules {
        let limits: Vec<Algorithm> = self.limits.iter().map(of).collect();
        weir_testing::rules::numbered("differential", &[Field::Resource, Field::Consumer], &limits)
    }
}

impl ClockStep {
    fn apply(self, pure: &mut Named) {
        let now = pure.machine.now.0;
        let to = match self {
            Self::None => now,
            Self::Back(by) => now.saturating_sub(by),
            Self::BackByReset(off) => {
                now.saturating_sub(pure.machine.last_reset()).saturating_add_signed(i64::from(off))
            }
            Self::To(time) => time,
        };
        pure.machine.now = Micros(to.min(CEILING));
    }
}

/// A limit under two configurations.
fn pair() -> BoxedStrategy<(Algorithm, Algorithm)> {
    prop_oneof![
        2 => (random::bucket(), random::bucket()),
        3 => (random::any_bucket(), random::any_bucket()),
        2 => (random::warm_up(), random::warm_up()),
        2 => (random::held_log(), random::held_log()),
        3 => (random::window(), random::window()),
        3 => (random::interval(), random::interval()),
        3 => (random::log(), random::log()),
        2 => (random::strict_log(), random::strict_log()),
        4 => (random::sliding(), random::sliding()),
        4 => (random::slots(), random::slots()),
        4 => (random::sparse(), random::sparse()),
        1 => (random::limit(), random::limit()),
    ]
    .boxed()
}

/// Limits of the short path.
fn plain_pair() -> BoxedStrategy<(Algorithm, Algorithm)> {
    prop_oneof![
        (random::bucket(), random::bucket()),
        (random::window(), random::window()),
        (random::interval(), random::interval()),
        (random::log(), random::log()),
        (random::sliding(), random::sliding()),
        (random::slots(), random::slots()),
    ]
    .boxed()
}

fn story() -> impl Strategy<Value = Story> {
    let limits = prop_oneof![
        3 => prop::collection::vec(pair(), 1),
        1 => prop::collection::vec(pair(), 2..=4),
        1 => prop::collection::vec(pair(), MAX_LIMITS),
        1 => prop::collection::vec(plain_pair(), 4..=MAX_LIMITS),
    ];
    (limits, prop::collection::vec(call(), 1..40)).prop_map(|(limits, calls)| Story { limits, calls })
}

fn call() -> impl Strategy<Value = Call> {
    call_of(random::op().boxed())
}

fn call_of(op: BoxedStrategy<Op>) -> impl Strategy<Value = Call> {
    let clock = prop_oneof![
        12 => Just(ClockStep::None),
        2 => (1..50_u64).prop_map(ClockStep::Back),
        2 => (-1..=1_i8).prop_map(ClockStep::BackByReset),
        1 => any::<u32>().prop_map(|by| ClockStep::Back(by.into())),
        1 => (0..=CEILING).prop_map(ClockStep::To),
    ];
    let step = (random::step(op), clock);
    let more = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(random::cost(), 1..6)];
    (step, more, prop::bool::weighted(0.15)).prop_map(|((step, clock), more_costs, changed)| Call {
        step,
        clock,
        more_costs,
        changed,
    })
}
