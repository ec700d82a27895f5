//! The pure state machine, the memory store and Lua on random calls of every kind. The clock moves forwards and back,
//! and the rules change. All three answer the same, to the last bit of an estimate. In Redis, calls that are made together
//! share a script call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use weir_core::key::Subject;
use weir_core::strategy::{
    AdaptiveRule, Attributes, ConcurrencyNumbers, ControllerRule, LimitSource, Partitions, ProbeRule,
    SamplingRule, Strategy as Rules,
};
use weir_leases::model::{LeaseAnswer, LeaseOp, WorkOutcome};
use weir_leases::store::{LeaseAsk, LeaseStore, ProcessLeases};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_time::clock::ManualClock;
use weir_units::{CEILING, Micros};

use super::world::{self, PureLeases, START};
use crate::support::random;

/// Ids that look like fields of the hash, and some that do not.
const IDS: [&str; 8] = ["s", "c", "is", "p", "pgold", "", "é {x}", "a lease"];
const TIERS: [&str; 4] = ["gold", "silver", "other", ""];

/// Two configurations of one limit, and what happens.
#[derive(Debug, Clone)]
struct Story {
    rules: [ConcurrencyNumbers; 2],
    calls: Vec<Call>,
}

#[derive(Debug, Clone)]
struct Call {
    clock: ClockStep,
    /// True if the step is made together with the one before: at its time, and under its configuration.
    together: bool,
    /// Index of one of two keys.
    key: usize,
    id: usize,
    tier: usize,
    op: LeaseOp,
    /// True if the second configuration is in force.
    changed: bool,
}

#[derive(Debug, Clone, Copy)]
enum ClockStep {
    On(u64),
    Back(u64),
    To(u64),
    /// Until the last lease that was acquired or renewed ends, or a microsecond less or more.
    ToItsEnd(i8),
}

#[test]
fn redis() {
    tell_stories(1, |clock| Box::pin(async move { world::redis(clock).await }));
}

#[test]
fn cluster() {
    tell_stories(8, |clock| Box::pin(async move { world::cluster(clock).await }));
}

type Opened<'a> = std::pin::Pin<Box<dyn Future<Output = RedisStore> + 'a>>;

/// Runs one `share`th of the usual number of random cases.
fn tell_stories(share: u32, open: impl Fn(&ManualClock) -> Opened<'_>) {
    let mut config = random::config();
    config.cases /= share;
    config.source_file = Some(file!());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = ManualClock::at(Micros(START));
    let redis = runtime.block_on(open(&clock));
    let world = World { pure: world::pure(&clock), memory: world::memory(&clock), redis, clock, runtime };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&story(), |story| world.tell(&story));
    outcome.unwrap_or_else(|difference| panic!("{difference}\n{runner}"));
}

struct World {
    runtime: tokio::runtime::Runtime,
    clock: ManualClock,
    pure: PureLeases,
    memory: ProcessLeases,
    redis: RedisStore,
}

impl World {
    fn tell(&self, story: &Story) -> Result<(), TestCaseError> {
        static STORIES: AtomicU64 = AtomicU64::new(0);
        let consumer = format!("story {}", STORIES.fetch_add(1, Ordering::Relaxed));
        let rules = story.rules.clone().map(|numbers| world::strategy("differential", numbers));
        let keys = [consumer.clone(), format!("{consumer}, other")];
        let (mut now, mut ends, mut number) = (START, START, 0);
        for calls in story.calls.chunk_by(|_, next| next.together) {
            now = calls[0].clock.from(now, ends);
            self.clock.set(Micros(now));
            let tiers: Vec<_> = calls.iter().map(|call| [("tier", TIERS[call.tier])]).collect();
            let mut asks = Vec::new();
            for (call, tier) in calls.iter().zip(&tiers) {
                let attributes = Attributes::of_pairs(tier);
                let consumer = &keys[call.key];
                let subject = Subject { resource: "leases", consumer, attributes, ..Subject::default() };
                let strategy = &rules[usize::from(calls[0].changed)];
                asks.push(LeaseAsk { strategy, subject, id: IDS[call.id], op: call.op, deadline: None });
            }
            let [pure, memory, redis] = self.answers(&asks);
            number += calls.len();
            prop_assert_eq!(
                &memory,
                &pure,
                "calls up to {} at {}: memory is left, the state machine right",
                number,
                now
            );
            prop_assert_eq!(&redis, &pure, "calls up to {} at {}: Lua is left, Rust right", number, now);
            for call in calls {
                if let LeaseOp::Acquire { ttl, .. } | LeaseOp::Renew { ttl } = call.op {
                    ends = now + ttl.0;
                }
            }
        }
        Ok(())
    }

    fn answers(&self, asks: &[LeaseAsk<'_>]) -> [Vec<Result<LeaseAnswer, StoreError>>; 3] {
        self.runtime.block_on(async {
            let (mut pure, mut memory) = (Vec::new(), Vec::new());
            for ask in asks {
                pure.push(self.pure.lease(ask).await);
                memory.push(self.memory.lease(ask).await);
            }
            [pure, memory, join_all(asks.iter().map(|ask| self.redis.lease(ask))).await]
        })
    }
}

impl ClockStep {
    fn from(self, now: u64, ends: u64) -> u64 {
        let to = match self {
            Self::On(by) => now + by,
            Self::Back(by) => now.saturating_sub(by),
            Self::To(time) => time,
            Self::ToItsEnd(off) => ends.saturating_add_signed(off.into()),
        };
        to.min(CEILING)
    }
}

fn story() -> impl Strategy<Value = Story> {
    let rules = prop_oneof![
        1 => numbers().prop_map(|one| [one.clone(), one]),
        1 => (numbers(), numbers()).prop_map(|(one, other)| [one, other]),
    ];
    (rules, prop::collection::vec(call(), 1..60)).prop_map(|(rules, calls)| Story { rules, calls })
}

fn numbers() -> impl Strategy<Value = ConcurrencyNumbers> {
    let fixed = (0..12_u64).prop_map(LimitSource::Fixed);
    let large = (0..CEILING).prop_map(LimitSource::Fixed);
    let source = prop_oneof![4 => fixed, 1 => large, 8 => adaptive().prop_map(LimitSource::Adaptive)];
    let shares = (0..=1000_u64, 0..=1000_u64);
    let partitions = prop::option::weighted(0.4, shares).prop_map(|shares| {
        shares.map(|(gold, silver)| {
            Partitions::new("tier", vec![("gold".into(), gold), ("silver".into(), silver)])
        })
    });
    let max_ttl = prop_oneof![Just(1_000_u64), Just(100_000), Just(3_600_000_000)];
    (source, partitions, max_ttl).prop_map(|(source, partitions, max_ttl)| ConcurrencyNumbers {
        source,
        ttl: Micros(max_ttl),
        max_ttl: Micros(max_ttl),
        max_weight: None,
        partitions,
    })
}

fn adaptive() -> impl Strategy<Value = AdaptiveRule> {
    let range = (1..20_u64, 0..20_u64, prop_oneof![0..20_u64, 0..2_000_u64])
        .prop_map(|(min, above, more)| (min + above, min, min + above + more));
    let probe = prop_oneof![
        Just(ProbeRule::Never),
        (1..5_u32).prop_map(|every| ProbeRule::Every(every.into())),
        (1..3_u32).prop_map(|samples| ProbeRule::PerPermit(f64::from(samples) / 10.0)),
    ];
    let part = || (1..=1000_u32).prop_map(|part| f64::from(part) / 1000.0);
    let controller = prop_oneof![
        (part(), 0..100_000_u64).prop_map(|(backoff, timeout)| {
            ControllerRule::Aimd(weir_core::strategy::AimdRule { backoff, timeout: Micros(timeout) })
        }),
        (part(), probe).prop_map(|(smoothing, probe)| world::vegas(smoothing, probe)),
        (part(), 1..50_u32, 1..700_u32, part()).prop_map(|(smoothing, queue, window, tolerance)| {
            ControllerRule::Gradient2(weir_core::strategy::Gradient2Rule {
                smoothing,
                queue: queue.into(),
                long_window: window.into(),
                tolerance: 1.0 + tolerance,
            })
        }),
    ];
    let sampling = (1..5_000_u64, 1..5_u64)
        .prop_map(|(window, samples)| SamplingRule { window: Micros(window), samples });
    let idle = prop_oneof![Just(0_u64), Just(5_000), Just(600_000_000)];
    (range, controller, prop::option::weighted(0.4, sampling), idle).prop_map(
        |(range, controller, sampling, idle)| AdaptiveRule {
            sampling,
            idle: Micros(idle),
            ..world::adaptive(range, controller)
        },
    )
}

fn call() -> impl Strategy<Value = Call> {
    let clock = prop_oneof![
        8 => (0..3_000_u64).prop_map(ClockStep::On),
        2 => (0..200_000_u64).prop_map(ClockStep::On),
        2 => (1..5_000_u64).prop_map(ClockStep::Back),
        3 => (-1..=1_i8).prop_map(ClockStep::ToItsEnd),
        1 => any::<u32>().prop_map(|by| ClockStep::Back(by.into())),
        1 => (0..=CEILING).prop_map(ClockStep::To),
    ];
    let (together, key) = (prop::bool::weighted(0.4), prop_oneof![3 => Just(0_usize), 1 => Just(1)]);
    (clock, together, key, 0..IDS.len(), 0..TIERS.len(), op(), prop::bool::weighted(0.2)).prop_map(
        |(clock, together, key, id, tier, op, changed)| Call { clock, together, key, id, tier, op, changed },
    )
}

fn op() -> impl Strategy<Value = LeaseOp> {
    let ttl = || prop_oneof![1..5_000_u64, Just(100_000_u64), Just(3_600_000_000)].prop_map(Micros);
    let rtt = || prop_oneof![0..5_000_u64, Just(10_000), 0..CEILING].prop_map(Micros);
    let weight = prop_oneof![8 => 1..6_u64, 1 => 0..40_u64, 1 => 0..CEILING];
    let outcome = prop_oneof![4 => Just(WorkOutcome::Success), 1 => Just(WorkOutcome::Ignored), 1 => Just(WorkOutcome::Dropped)];
    prop_oneof![
        5 => (weight, ttl()).prop_map(|(weight, ttl)| LeaseOp::Acquire { weight, ttl }),
        1 => ttl().prop_map(|ttl| LeaseOp::Renew { ttl }),
        4 => (outcome, prop::option::of(rtt()))
            .prop_map(|(outcome, rtt)| LeaseOp::Release { outcome, rtt }),
        2 => (rtt(), 0..30_u64, any::<bool>())
            .prop_map(|(rtt, in_flight, dropped)| LeaseOp::Sample { rtt, in_flight, dropped }),
    ]
}

/// The numbers of a controller are shared within a key, and each random case has its own key.
#[test]
fn stories_have_keys_of_their_own() {
    let clock = ManualClock::at(Micros(START));
    let rules: Arc<Rules> = world::strategy("differential", world::numbers(1));
    let pure = world::pure(&clock);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let acquire = |consumer: &str| {
        let subject = Subject { resource: "leases", consumer, ..Subject::default() };
        let op = LeaseOp::Acquire { weight: 1, ttl: Micros(1) };
        let ask = LeaseAsk { strategy: &rules, subject, id: "a", op, deadline: None };
        runtime.block_on(pure.lease(&ask)).unwrap().in_flight
    };
    assert_eq!((acquire("a"), acquire("b"), acquire("a")), (1, 1, 1));
}
