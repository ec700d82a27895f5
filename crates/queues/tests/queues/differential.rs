//! The pure state machine, the memory store and Lua on random stories: calls of every kind, clocks that go forwards and
//! back, numbers that change on the way. All say the same. In Redis, calls that are made together share a script call.

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use weir_queues::model::{
    ArchiveRule, FullQueue, ItemFate, ItemId, NewItem, OutcomeSearch, PayloadRule, QueueAnswer, QueueKind,
    QueueNumbers, QueueOp, QueueOrder, QueuePace, QueuePart, QueueReply, QueueRule,
};
use weir_queues::store::ProcessQueues;
use weir_queues::store::{QueueAsk, QueueStore};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{self, PureQueues, START};
use crate::support::random;

/// Two configurations of one queue, and what happens.
#[derive(Debug, Clone)]
struct Story {
    numbers: [QueueNumbers; 2],
    calls: Vec<Call>,
}

#[derive(Debug, Clone)]
struct Call {
    clock: ClockStep,
    /// Operations that are done together, all of one kind.
    ops: Vec<RandomOp>,
    /// True if they are about the dead letters.
    dead: bool,
    /// True if the second configuration is in force.
    changed: bool,
}

#[derive(Debug, Clone, Copy)]
enum ClockStep {
    On(u64),
    Back(u64),
}

#[derive(Debug, Clone)]
enum RandomOp {
    /// Sizes, and ids of some.
    Enqueue(Vec<(usize, Option<u8>)>),
    Take(usize),
    /// Indexes of items among the last that were taken, and an outcome.
    Ack(Vec<usize>, bool),
    Nack(Vec<usize>, u64),
    Extend(Vec<usize>, u64),
    Stats(usize),
    /// After which of the last items that were taken, and how many.
    Browse(usize, usize),
    Redrive(usize, usize),
    Purge,
    /// Of which of the last items, or of all; from how many milliseconds ago to how many; how many; and which way and text.
    Outcomes(usize, bool, (u64, u64), usize, (Option<ItemFate>, bool)),
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

/// Tells one `share`th of the usual number of stories.
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
    pure: PureQueues,
    memory: ProcessQueues,
    redis: RedisStore,
}

impl World {
    fn tell(&self, story: &Story) -> Result<(), TestCaseError> {
        let first = world::queue(story.numbers[0].clone());
        let second = QueueRule::new(first.name(), story.numbers[1].clone()).unwrap();
        let (mut now, mut taken) = (START, [vec![ItemId::default()], vec![ItemId::default()]]);
        for (number, call) in story.calls.iter().enumerate() {
            now = match call.clock {
                ClockStep::On(by) => now + by,
                ClockStep::Back(by) => now - by,
            };
            self.clock.set(Micros(now));
            let rule = if call.changed { &second } else { &first };
            let Some(dead) = possible(rule, call) else { continue };
            let part = if dead { QueuePart::Dead } else { QueuePart::Main };
            let [pure, memory, redis] = self.answers(rule, part, &call.ops, &taken[usize::from(dead)]);
            let number = number + 1;
            prop_assert_eq!(
                &memory,
                &pure,
                "call {} at {}: memory is left, the state machine right",
                number,
                now
            );
            prop_assert_eq!(&redis, &pure, "call {} at {}: Lua is left, Rust right", number, now);
            for answer in pure {
                if let Ok(QueueAnswer { reply: QueueReply::Taken { items, .. }, .. }) = answer {
                    taken[usize::from(dead)].extend(items.iter().map(|item| item.id));
                }
            }
        }
        Ok(())
    }

    fn answers(
        &self,
        rule: &QueueRule,
        part: QueuePart,
        ops: &[RandomOp],
        taken: &[ItemId],
    ) -> [Vec<Result<QueueAnswer, StoreError>>; 3] {
        let payload = vec![b'x'; 65_536];
        let lists: Vec<_> = ops.iter().map(|op| (op.items(&payload), op.ids(taken), op.tokens())).collect();
        let asks: Vec<_> = ops
            .iter()
            .zip(&lists)
            .map(|(op, (items, ids, tokens))| QueueAsk {
                rule,
                part,
                op: op.with_items(items, ids, tokens),
                deadline: None,
            })
            .collect();
        self.runtime.block_on(async {
            let (mut pure, mut memory) = (Vec::new(), Vec::new());
            for ask in &asks {
                pure.push(self.pure.queue(ask).await);
                memory.push(self.memory.queue(ask).await);
            }
            [pure, memory, join_all(asks.iter().map(|ask| self.redis.queue(ask))).await]
        })
    }
}

impl RandomOp {
    fn items<'a>(&self, payload: &'a [u8]) -> Vec<NewItem<'a>> {
        const IDS: [&str; 5] = ["a", "b", "{c}", "é", "s"];
        let Self::Enqueue(sizes) = self else { return Vec::new() };
        let mut used = Vec::new();
        let item = |(size, id): &(usize, Option<u8>)| {
            let id = id.map(|id| IDS[usize::from(id) % IDS.len()]).filter(|id| !used.contains(id));
            used.extend(id);
            NewItem { digest: 0, id: id.unwrap_or_default(), payload: &payload[..*size] }
        };
        sizes.iter().map(item).collect()
    }

    fn ids(&self, taken: &[ItemId]) -> Vec<ItemId> {
        self.picks().iter().map(|pick| taken[taken.len() - 1 - pick % taken.len()]).collect()
    }

    fn picks(&self) -> &[usize] {
        match self {
            Self::Ack(picks, _) | Self::Nack(picks, _) | Self::Extend(picks, _) => picks,
            Self::Browse(pick, _) | Self::Redrive(pick, _) | Self::Outcomes(pick, ..) => {
                std::slice::from_ref(pick)
            }
            _ => &[],
        }
    }

    /// None, or one for each item: of its delivery, of another one, or 0.
    fn tokens(&self) -> Vec<u64> {
        let picks = self.picks();
        match picks.first() {
            Some(first) if first % 2 == 1 => picks.iter().map(|pick| token(pick / 2)).collect(),
            _ => Vec::new(),
        }
    }

    fn with_items<'a>(&self, items: &'a [NewItem<'a>], ids: &'a [ItemId], tokens: &'a [u64]) -> QueueOp<'a> {
        match *self {
            Self::Enqueue(_) => QueueOp::Enqueue { items },
            Self::Take(max_items) => QueueOp::Take { token: token(max_items), taker: "a worker", max_items },
            Self::Ack(_, speaks) => QueueOp::Ack { tokens, ids, outcome: if speaks { "done" } else { "" } },
            Self::Nack(_, delay) => QueueOp::Nack { tokens, ids, delay: Micros(delay) },
            Self::Extend(_, span) => QueueOp::Extend { tokens, ids, visibility: Micros(span) },
            Self::Stats(outcomes) => QueueOp::Stats { outcomes },
            Self::Browse(_, max_items) => QueueOp::Browse { after: ids[0], max_items },
            Self::Redrive(_, max_items) => QueueOp::Redrive { after: ids[0], max_items },
            Self::Purge => QueueOp::Purge,
            Self::Outcomes(_, of_all, (from, until), max_items, (fate, speaks)) => {
                let ms = |after: u64| (START / 1000 + after).saturating_sub(50);
                let before = if of_all {
                    ItemId { ms: ms(until), seq: 1 }
                } else {
                    ItemId { ms: u64::MAX >> 11, seq: 0 }
                };
                let item = (!of_all).then_some(ids[0]);
                let text = if speaks { "done" } else { "" };
                QueueOp::Outcomes(OutcomeSearch { item, fate, text, from_ms: ms(from), before, max_items })
            }
        }
    }
}

/// 0, or one of two tokens of which each half counts.
fn token(number: usize) -> u64 {
    (number as u64 % 3) << 32 | (number as u64 % 3)
}

/// True if a call that callers can make is about the dead letters; `None` if they cannot make it.
fn possible(rule: &QueueRule, call: &Call) -> Option<bool> {
    let numbers = rule.numbers();
    let settles =
        call.ops.iter().any(|op| matches!(op, RandomOp::Ack(..) | RandomOp::Nack(..) | RandomOp::Extend(..)));
    let puts = call.ops.iter().any(|op| matches!(op, RandomOp::Enqueue(_)));
    if call.ops.iter().any(|op| matches!(op, RandomOp::Redrive(..))) {
        return numbers.max_deliveries.map(|_| false);
    }
    let dead = call.dead && numbers.max_deliveries.is_some() && !puts;
    (dead || !(settles && numbers.kind == QueueKind::List)).then_some(dead)
}

fn story() -> impl Strategy<Value = Story> {
    let numbers = prop_oneof![
        1 => numbers().prop_map(|one| [one.clone(), one]),
        1 => (numbers(), numbers()).prop_map(|(one, other)| {
            // Another kind has other keys; the memory store has the same.
            let kind = one.kind;
            let max_deliveries = other.max_deliveries.filter(|_| kind == QueueKind::Stream);
            let order = one.order;
            [one, QueueNumbers { kind, max_deliveries, order, ..other }]
        }),
    ];
    (numbers, prop::collection::vec(call(), 1..60)).prop_map(|(numbers, calls)| Story { numbers, calls })
}

fn numbers() -> impl Strategy<Value = QueueNumbers> {
    let kind = prop_oneof![3 => Just(QueueKind::Stream), 1 => Just(QueueKind::List)];
    let pace = prop::option::weighted(0.3, (1..8_u64, 1..20_000_u64));
    let deliveries = prop::option::weighted(0.7, 1..4_u64);
    let outcomes = archive();
    let visibility = prop_oneof![1_000..10_000_u64, Just(86_400_000_000)];
    let max_bytes = prop_oneof![Just(65_536_u64), Just(1 << 30)];
    let capacity = prop_oneof![3 => 1..12_u64, 1 => Just(40_u64)];
    let max_age = prop::option::weighted(0.3, prop_oneof![Just(1_000_u64), 2_000..100_000_u64]);
    let room = (max_age, any::<bool>(), any::<bool>());
    (kind, capacity, max_bytes, pace, visibility, (deliveries, outcomes, room)).prop_map(
        |(kind, capacity, max_bytes, pace, visibility, (deliveries, outcomes, (max_age, drops, lifo)))| {
            QueueNumbers {
                kind,
                capacity,
                max_bytes,
                pace: pace.map(|(count, period)| QueuePace { count, period: Micros(period) }),
                visibility: Micros(visibility),
                max_deliveries: deliveries.filter(|_| kind == QueueKind::Stream),
                outcomes,
                max_age: max_age.map(Micros),
                when_full: if drops { FullQueue::DropOldest } else { FullQueue::Refuse },
                order: if lifo && kind == QueueKind::List { QueueOrder::Lifo } else { QueueOrder::Fifo },
            }
        },
    )
}

fn archive() -> impl Strategy<Value = ArchiveRule> {
    let keep = prop_oneof![Just(0_u64), Just(5_000), Just(3_600_000_000), Just(3_600_000_000)];
    let max = prop_oneof![1..4_u64, Just(100_000)];
    let payload = prop::sample::select(vec![PayloadRule::None, PayloadRule::Digest, PayloadRule::Head]);
    (keep, max, payload).prop_map(|(keep, max, payload)| ArchiveRule { keep: Micros(keep), max, payload })
}

fn call() -> impl Strategy<Value = Call> {
    let clock = prop_oneof![
        8 => (0..3_000_u64).prop_map(ClockStep::On),
        2 => (0..200_000_u64).prop_map(ClockStep::On),
        1 => (1..5_000_u64).prop_map(ClockStep::Back),
    ];
    (clock, ops(), prop::bool::weighted(0.2), prop::bool::weighted(0.2))
        .prop_map(|(clock, ops, dead, changed)| Call { clock, ops, dead, changed })
}

/// One to three calls of one kind.
fn ops() -> impl Strategy<Value = Vec<RandomOp>> {
    let size = prop_oneof![8 => 0..20_usize, 1 => 30_000..65_537_usize];
    let items = prop::collection::vec((size, prop::option::weighted(0.3, any::<u8>())), 1..6);
    let picks = || prop::collection::vec(0..6_usize, 1..4);
    let settles = prop_oneof![
        (picks(), any::<bool>()).prop_map(|(picks, speaks)| RandomOp::Ack(picks, speaks)),
        (picks(), 0..5_000_u64).prop_map(|(picks, delay)| RandomOp::Nack(picks, delay)),
        (picks(), 1_000..9_000_u64).prop_map(|(picks, span)| RandomOp::Extend(picks, span)),
    ];
    prop_oneof![
        12 => prop::collection::vec(items.prop_map(RandomOp::Enqueue), 1..4),
        12 => prop::collection::vec(prop_oneof![4 => 1..8_usize, 1 => 8..22_usize].prop_map(RandomOp::Take), 1..4),
        12 => prop::collection::vec(settles, 1..4),
        3 => (0..4_usize).prop_map(|outcomes| vec![RandomOp::Stats(outcomes)]),
        3 => (0..6_usize, 1..40_usize).prop_map(|(pick, most)| vec![RandomOp::Browse(pick, most)]),
        3 => (0..6_usize, 1..20_usize).prop_map(|(pick, most)| vec![RandomOp::Redrive(pick, most)]),
        1 => Just(vec![RandomOp::Purge]),
        4 => outcomes().prop_map(|outcomes| vec![outcomes]),
    ]
}

fn outcomes() -> impl Strategy<Value = RandomOp> {
    let fates = [ItemFate::Acked, ItemFate::DeadLettered, ItemFate::Dropped, ItemFate::AgedOut];
    let filters =
        (prop::option::weighted(0.3, prop::sample::select(fates.to_vec())), prop::bool::weighted(0.2));
    let span = prop_oneof![Just((0, u64::MAX >> 20)), (0..400_u64, 0..800_u64)];
    (0..6_usize, prop::bool::weighted(0.8), span, 0..9_usize, filters)
        .prop_map(|(pick, of_all, span, most, filters)| RandomOp::Outcomes(pick, of_all, span, most, filters))
}
