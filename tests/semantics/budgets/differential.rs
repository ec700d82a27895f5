//! Rust = Lua, bit for bit: random questions, holds and settlements get the same answers from the pure driver and from a real
//! Redis. Between them the clock moves forwards and back, and limits and `max` change.
//!
//! A case that differs is shrunk to the shortest list of calls, and kept beside this file.

mod limits;
mod long_traces;
mod stories;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use weir_config::Topology;
use weir_core::algorithm::budget::{BudgetVerdict, NotDecided};
use weir_core::key::{Subject, write_name};
use weir_core::strategy::Strategy as Rules;
use weir_store::{BudgetDecision, BudgetOp, Store as _, StoreError};
use weir_units::Micros;

use self::stories::{Story, StoryOp, plain_story, story};
use super::rows::engines::decide_pure;
use super::rows::world::World;
use crate::differential::World as Teller;
use crate::properties::machine::START;
use crate::properties::random;
use crate::support;

const TRACES: u32 = 2_000;

#[test]
fn redis() {
    tell_stories(2024, TRACES, vec![support::shared_redis().url()], Topology::Single);
}

#[test]
fn cluster() {
    tell_stories(2024, TRACES / 8, support::shared_cluster().urls(), Topology::Cluster);
}

/// Named costs alone, most of which the short path decides.
#[test]
fn redis_without_holds() {
    let nodes = vec![support::shared_redis().url()];
    let (decisions, _) = told(2026, TRACES, &plain_story(), nodes, Topology::Single);
    assert!(decisions > 10 * TRACES as usize, "{decisions}");
}

#[test]
fn cluster_without_holds() {
    told(2027, TRACES / 8, &plain_story(), support::shared_cluster().urls(), Topology::Cluster);
}

fn tell_stories(seed: u64, cases: u32, nodes: Vec<String>, topology: Topology) {
    let (_, holds) = told(seed, cases, &story(), nodes, topology);
    assert!(holds > cases as usize / 2, "{holds} holds");
}

/// Tells stories. Returns how many decisions were compared, and how many holds were made.
fn told(
    seed: u64,
    cases: u32,
    stories: &impl Strategy<Value = Story>,
    nodes: Vec<String>,
    topology: Topology,
) -> (usize, usize) {
    let mut config = random::config();
    config.cases = cases;
    // `PROPTEST_RNG_SEED` looks elsewhere.
    if config.rng_seed == RngSeed::Fixed(2024) {
        config.rng_seed = RngSeed::Fixed(seed);
    }
    config.source_file = Some(file!());
    let teller = RefCell::new(Teller::new(nodes, topology));
    let (decisions, holds) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(stories, |story| {
        let (told, held) = teller.borrow_mut().tell_budget(&story)?;
        decisions.set(decisions.get() + told);
        holds.set(holds.get() + held);
        Ok(())
    });
    println!("{cases} traces, {} decisions, {} holds", decisions.get(), holds.get());
    outcome.unwrap_or_else(|difference| panic!("{difference}\n{runner}"));
    (decisions.get(), holds.get())
}

impl Teller {
    /// Runs the calls on both, under unused keys. Returns how many decisions were compared, and how many holds were made.
    fn tell_budget(&mut self, story: &Story) -> Result<(usize, usize), TestCaseError> {
        static STORIES: AtomicU64 = AtomicU64::new(0);
        let consumer = format!("budget {}", STORIES.fetch_add(1, Ordering::Relaxed));
        let subject = Subject { resource: "differential", consumer: &consumer, ..Subject::default() };
        let configurations = [story.limits.configuration(false), story.limits.configuration(true)];
        let (mut world, mut holds, mut now) = (World::default(), 0, Micros(START));
        let mut last: Option<BudgetVerdict> = None;
        for (number, step) in story.steps.iter().enumerate() {
            let (strategy, costed) = &configurations[usize::from(step.changed)];
            now = step.time(now, last.as_ref());
            self.clock.set(now);
            let op = step.op(costed, last.as_ref());
            let keys = names(strategy, &subject);
            // Ids of plain calls and of holds are apart by their kind alone.
            let cells = world.cells_of(keys, step.id().to_owned());
            let expected = decide_pure(costed, cells, (op.as_op(), step.id()), now);
            let decision = BudgetDecision {
                strategy,
                costed,
                subject,
                op: op.as_op(),
                id: step.id(),
                deadline: None,
                caller: 0,
            };
            let said = self.runtime.block_on(self.store.decide_costs(&decision).verdicts());
            let said = said.map(|verdicts| *verdicts.budget.unwrap());
            let what = format!("call {} at {}: {op:?}", number + 1, now.0);
            match (said, expected) {
                (Ok(said), Ok(expected)) => {
                    prop_assert_eq!(&said, &expected, "{}: Lua is left, Rust right", what);
                    holds += usize::from(expected.held_for.is_some() && expected.applied);
                    last = Some(expected);
                }
                (Err(StoreError::OtherContents), Err(NotDecided::OtherContents))
                | (Err(StoreError::TooManyEnds), Err(NotDecided::TooManyEnds)) => {}
                (said, expected) => prop_assert!(false, "{what}: {said:?}, {expected:?}"),
            }
        }
        Ok((story.steps.len(), holds))
    }
}

fn names(strategy: &Arc<Rules>, subject: &Subject<'_>) -> Vec<String> {
    let name = |limit| {
        let mut name = Vec::new();
        write_name(&mut name, strategy, limit, subject);
        String::from_utf8(name).unwrap()
    };
    strategy.limits().iter().map(name).collect()
}

impl StoryOp {
    fn as_op(&self) -> BudgetOp<'_> {
        match self {
            Self::Ask(asked) => BudgetOp::Ask(asked),
            Self::Settle(used) => BudgetOp::Settle(used),
            Self::Debit(used) => BudgetOp::Debit(used),
            Self::Refund(units, limits) => BudgetOp::Refund(*units, *limits),
            Self::Reset(limits) => BudgetOp::Reset(*limits),
        }
    }
}
