//! `ControlState` and the scripts on random stories: puts, deletions, ends, merges, polls, and a clock that goes forwards
//! and back. Both say the same.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use weir_config::Topology;
use weir_control::model::{ControlPosition, ControlPut, ControlRecord, ControlState};
use weir_control::store::ControlLink;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{HOUR, START, link};
use crate::support::random;

const KEYS: [&str; 5] = ["a", "override/b", "c", "é{x}", "access/\n"];
const GENERATIONS: [&str; 2] = ["generation/s", "generation/{t}"];

#[derive(Debug, Clone)]
struct Step {
    /// Forwards, or back.
    clock: i64,
    op: RandomOp,
}

#[derive(Debug, Clone)]
enum RandomOp {
    Put {
        key: usize,
        expect: Expect,
        after: Option<u64>,
        deletes: bool,
        generation: Option<usize>,
        repeats: bool,
    },
    /// Several changes as one, in the order of distinct keys.
    PutMany(Vec<RandomOp>),
    Merge(Vec<RandomRecord>),
    /// From which of the positions seen so far, counted from the last.
    Poll(usize),
    ReadAll,
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    Anything,
    None,
    Current,
    Other,
}

#[derive(Debug, Clone)]
struct RandomRecord {
    /// One of the keys, or of the generations.
    key: usize,
    /// Version and time of the end, from now.
    version: i64,
    ends: Option<i64>,
    deleted: bool,
    change: u64,
}

#[test]
fn redis() {
    tell_stories(Topology::Single, 1);
}

#[test]
fn cluster() {
    tell_stories(Topology::Cluster, 8);
}

/// Tells one `share`th of the usual number of stories.
fn tell_stories(topology: Topology, share: u32) {
    let mut config = random::config();
    config.cases /= share;
    config.source_file = Some(file!());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = ManualClock::at(Micros(START));
    let mut runner = TestRunner::new(config);
    let story = prop::collection::vec(step(), 1..60);
    let tell = |steps: Vec<Step>| {
        runtime.block_on(async {
            let link = link(topology, &clock).await;
            World {
                link,
                state: ControlState::default(),
                clock: &clock,
                now: START,
                seen: Vec::new(),
                change: 0,
            }
            .tell(&steps)
            .await
        })
    };
    let outcome = runner.run(&story, tell);
    outcome.unwrap_or_else(|difference| panic!("{difference}\n{runner}"));
}

struct World<'a> {
    link: ControlLink,
    state: ControlState,
    clock: &'a ManualClock,
    now: u64,
    seen: Vec<ControlPosition>,
    change: u64,
}

impl World<'_> {
    async fn tell(&mut self, steps: &[Step]) -> Result<(), TestCaseError> {
        for (number, step) in steps.iter().enumerate() {
            self.now = self.now.saturating_add_signed(step.clock);
            self.clock.set(Micros(self.now));
            match &step.op {
                RandomOp::Put { .. } => self.put(&step.op, number).await?,
                RandomOp::PutMany(all) => self.put_many(all, number).await?,
                RandomOp::Merge(records) => self.merge(records, number).await?,
                RandomOp::Poll(back) => {
                    let known = self.seen.len().checked_sub(back + 1).map(|place| self.seen[place]);
                    let position = known.unwrap_or(if back % 2 == 0 {
                        ControlPosition::NONE
                    } else {
                        ControlPosition::UNSETTLED
                    });
                    let changes = self.link.poll(position).await.unwrap();
                    prop_assert_eq!(changes, self.state.changes_since(position), "poll {}", number);
                }
                RandomOp::ReadAll => self.read_all().await?,
            }
            self.seen.push(self.state.position());
        }
        self.read_all().await
    }

    async fn put(&mut self, op: &RandomOp, number: usize) -> Result<(), TestCaseError> {
        let Some(put) = self.one(op, number) else { return Ok(()) };
        let known = self.link.known_version();
        let there = self.link.put(&put).await.unwrap();
        prop_assert_eq!(
            there,
            self.state.put_above(self.now, known, put.clone()),
            "put {}: {:?}",
            number,
            put
        );
        Ok(())
    }

    /// All changes have the id of the first one.
    async fn put_many(&mut self, all: &[RandomOp], number: usize) -> Result<(), TestCaseError> {
        let mut puts: Vec<ControlPut> = all.iter().filter_map(|op| self.one(op, number)).collect();
        let change = puts.first().map_or(0, |put| put.change);
        puts.iter_mut().for_each(|put| put.change = change);
        let known = self.link.known_version();
        let there = self.link.put_many(&puts).await.unwrap();
        let here = self.state.put_many(self.now, known, &puts);
        prop_assert_eq!(there, here, "puts {}: {:?}", number, puts);
        Ok(())
    }

    fn one(&mut self, op: &RandomOp, number: usize) -> Option<ControlPut> {
        let &RandomOp::Put { key, expect, after, deletes, generation, repeats } = op else { return None };
        let key = KEYS[key];
        let own = self.state.records().find(|record| &*record.key == key);
        let live = own.filter(|record| record.is_live(self.now)).map(ControlRecord::position);
        let expect = match expect {
            Expect::Anything => None,
            Expect::None => Some(ControlPosition::NONE),
            Expect::Current => Some(live.unwrap_or_default()),
            Expect::Other => Some(ControlPosition { version: self.now - 5, change: 5 }),
        };
        self.change += 1;
        // All bits of an id count.
        let change = if repeats { own.map_or(1, |own| own.change) } else { self.change.rotate_right(9) | 1 };
        Some(ControlPut {
            key: key.into(),
            expect,
            change,
            expires_after: after.map(Micros),
            body: (!deletes).then(|| format!("body {number}").into_bytes().into()),
            tombstone: format!("deleted by {number}").into_bytes().into(),
            generation: generation.map(|number| GENERATIONS[number].into()),
        })
    }

    async fn merge(&mut self, records: &[RandomRecord], number: usize) -> Result<(), TestCaseError> {
        let records: Vec<ControlRecord> = records.iter().map(|record| record.at(self.now)).collect();
        self.change += 1;
        let there = self.link.merge(self.change, &records).await.unwrap();
        let here = self.state.merge(self.now, self.change, &records);
        prop_assert_eq!(there, here, "merge {}: {:?}", number, records);
        Ok(())
    }

    async fn read_all(&mut self) -> Result<(), TestCaseError> {
        let (records, position) = self.link.read_all().await.unwrap();
        prop_assert_eq!(records, self.state.records().cloned().collect::<Vec<_>>());
        prop_assert_eq!(position, self.state.position());
        prop_assert_eq!(self.link.store_time(), Some(Micros(self.now)));
        Ok(())
    }
}

impl RandomRecord {
    fn at(&self, now: u64) -> ControlRecord {
        let generation = self.key.checked_sub(KEYS.len()).map(|number| GENERATIONS[number]);
        let deleted = self.deleted && generation.is_none();
        let ends = self.ends.filter(|_| generation.is_none()).or(deleted.then_some(0));
        ControlRecord {
            key: generation.unwrap_or_else(|| KEYS[self.key]).into(),
            version: now.saturating_add_signed(self.version),
            change: self.change,
            expires_at: ends.map_or(0, |ends| now.saturating_add_signed(ends)),
            deleted,
            body: (*b"merged").into(),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let clock = prop_oneof![
        8 => 0..1_000_000_i64,
        1 => Just(12 * HOUR.cast_signed()),
        1 => Just(24 * HOUR.cast_signed()),
        1 => -2_000_000..0_i64,
        1 => Just(-30 * HOUR.cast_signed()),
    ];
    let expect = prop_oneof![
        3 => Just(Expect::Anything),
        1 => Just(Expect::None),
        2 => Just(Expect::Current),
        1 => Just(Expect::Other)
    ];
    let after = prop::option::weighted(0.3, prop_oneof![0..2_000_000_u64, Just(HOUR), Just(1 << 60)]);
    let generation = prop::option::weighted(0.3, 0..GENERATIONS.len());
    let put =
        (0..KEYS.len(), expect, after, prop::bool::weighted(0.3), generation, prop::bool::weighted(0.1));
    let put = put.prop_map(|(key, expect, after, deletes, generation, repeats)| RandomOp::Put {
        key,
        expect,
        after,
        deletes,
        generation,
        repeats,
    });
    let put = put.boxed();
    // Also an entry twice.
    let many = prop::collection::vec(put.clone(), 1..4).prop_map(RandomOp::PutMany);
    let op = prop_oneof![
        6 => put,
        4 => many,
        2 => prop::collection::vec(random_record(), 1..6).prop_map(RandomOp::Merge),
        3 => (0..8_usize).prop_map(RandomOp::Poll),
        1 => Just(RandomOp::ReadAll),
    ];
    (clock, op).prop_map(|(clock, op)| Step { clock, op })
}

fn random_record() -> impl Strategy<Value = RandomRecord> {
    let version = prop_oneof![-1_000_000..1_000_000_i64, Just(-40 * HOUR.cast_signed()), Just(0)];
    let ends = prop::option::of(prop_oneof![
        -1_000_000..1_000_000_i64,
        Just(-24 * HOUR.cast_signed()),
        Just(1 - 24 * HOUR.cast_signed())
    ]);
    // Halves of ids that differ in one of them.
    let change = prop_oneof![Just(1_u64), Just(2), Just(1 << 32), Just(1 << 63), Just(u64::MAX)];
    (0..KEYS.len() + GENERATIONS.len(), version, ends, any::<bool>(), change).prop_map(
        |(key, version, ends, deleted, change)| RandomRecord { key, version, ends, deleted, change },
    )
}
