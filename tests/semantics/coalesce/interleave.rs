//! Two workers, and random calls. The store executes a call at any time between its arrival and its answer. Answers
//! are lost, and callers give up. All changes have one order. Every answer has a place in it, and that place is not
//! before an answer that any caller had received when this caller asked.
//!
//! Two exceptions are allowed, and no other: an answer is as old as its way from the store took, and a cached
//! `remaining` may be out of date (`denials/holds.rs`).

mod gate;
mod truth;

use std::sync::Arc;
use weir_testing::DecideOne as _;
use weir_testing::stores::known;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_store::coalesce::Coalesce;
use weir_store::denials::{Denials, DenialsShared};
use weir_store::{Decision, StoreError, Verdicts};
use weir_time::clock::{Clock, ManualClock, Monotonic};
use weir_units::Micros;

use self::gate::Gate;
use self::truth::Asked;
use super::patient;
use crate::denials::random::{self as questions, RAISED, Rules, SUBJECTS, Scoped};
use crate::properties::machine::START;
use crate::properties::random::{self, Cost, Pause, Step};

/// The next event. A number selects one of the waiting calls or callers (modulo their count).
#[derive(Debug, Clone)]
enum Next {
    /// A worker is asked: after a pause or at once (`moves`), alone or with other calls (`looks`).
    Ask {
        of: questions::Asked,
        moves: bool,
        looks: bool,
    },
    Execute(usize),
    Answer(usize),
    Lose(usize),
    GiveUp(usize),
}

/// Two workers of one node in front of one store.
struct World {
    runtime: Runtime,
    clock: ManualClock,
    gate: Gate,
    workers: [Arc<Coalesce<Denials<Gate>>>; 2],
    callers: Vec<Caller>,
    known: usize,
}

/// A caller that waits for its answer.
struct Caller {
    asked: Asked,
    /// The highest place of an answer that any caller had received when this one asked.
    first: usize,
    task: JoinHandle<Result<Verdicts, StoreError>>,
}

/// Mostly the same keys and few costs, so that cached denials are used.
fn asked() -> impl Strategy<Value = questions::Asked> {
    let op = prop_oneof![6 => Just(Op::Charge), 1 => Just(Op::Peek), 1 => random::op()].boxed();
    let step = (random::step(op), prop_oneof![5 => (1..=4_u64).prop_map(Cost::Exactly), 1 => random::cost()]);
    let whose = prop_oneof![6 => Just(0_usize), 1 => 1..SUBJECTS.len()];
    (step, whose, questions::asked())
        .prop_map(|((step, cost), whose, (_, _, worker, more))| (Step { cost, ..step }, whose, worker, more))
}

fn next() -> impl Strategy<Value = Next> {
    let ask = (asked(), prop::bool::weighted(0.15), any::<bool>());
    prop_oneof![
        10 => ask.prop_map(|(of, moves, looks)| Next::Ask { of, moves, looks }),
        4 => any::<usize>().prop_map(Next::Execute),
        8 => any::<usize>().prop_map(Next::Answer),
        1 => any::<usize>().prop_map(Next::Lose),
        1 => any::<usize>().prop_map(Next::GiveUp),
    ]
}

/// Mostly limits that deny for longer than one test case takes.
fn scoped() -> impl Strategy<Value = Scoped> {
    let period = Micros::from_secs(60);
    let window = move |limit| Algorithm::fixed_window(limit, period, true, false).unwrap();
    let bucket = move |burst| Algorithm::bucket(burst, Rate { count: 1, period }).unwrap();
    let scope = || prop_oneof![3 => Just(0_usize), 1 => Just(1), 1 => Just(2)];
    let windows = (1..=8_u64, 1..=8_u64, scope());
    let buckets = (1..=8_u64, 1..=8_u64, scope());
    prop_oneof![
        1 => windows.prop_map(move |(own, other, scope)| (window(own), window(other), scope)),
        1 => buckets.prop_map(move |(own, other, scope)| (bucket(own), bucket(other), scope)),
        1 => questions::scoped(),
    ]
    .boxed()
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clock = ManualClock::at(Micros(START));
        let gate = Gate::new(clock.clone());
        let denials =
            DenialsShared::new(Micros::from_secs(60), Monotonic::from_clock(&Clock::Manual(clock.clone())));
        let worker = || Arc::new(Coalesce::before(denials.before(gate.clone()), &patient()));
        let workers = [worker(), worker()];
        Self { runtime, clock, gate, workers, callers: Vec::new(), known: 0 }
    }

    fn tell(&mut self, limits: &[Scoped], story: &[Next]) -> Result<(), String> {
        // One that failed may have left some.
        self.callers.drain(..).for_each(|caller| caller.task.abort());
        self.gate.clear();
        self.settle();
        self.clock.set(Micros(START));
        let rules = questions::rules(limits);
        for next in story {
            self.go_on(&rules, next)?;
        }
        while self.gate.waiting() > 0 {
            self.gate.answer(0);
            self.finish_callers()?;
        }
        if let Some(caller) = self.callers.first() {
            return Err(format!("{:?} was never answered", caller.asked));
        }
        self.gate.with(|at| at.truth.end())?;
        self.is_idle(&rules)
    }

    fn go_on(&mut self, rules: &[Rules; 2], next: &Next) -> Result<(), String> {
        let waiting = self.gate.waiting();
        match *next {
            Next::Ask { ref of, moves, looks } => self.ask(rules, of, moves, looks)?,
            Next::GiveUp(_) if self.callers.is_empty() => {}
            Next::GiveUp(index) => {
                let caller = self.callers.swap_remove(index % self.callers.len());
                caller.task.abort();
                self.gate.with(|at| at.truth.give_up(&caller.asked));
            }
            _ if waiting == 0 => {}
            Next::Execute(index) => self.gate.execute(index % waiting),
            Next::Answer(index) => self.gate.answer(index % waiting),
            Next::Lose(index) => self.gate.lose(index % waiting),
        }
        self.finish_callers()
    }

    fn ask(
        &mut self,
        rules: &[Rules; 2],
        of: &questions::Asked,
        moves: bool,
        looks: bool,
    ) -> Result<(), String> {
        let (step, whose, worker, more) = of;
        let strategy = Arc::clone(&rules[usize::from(*whose == RAISED)]);
        let mut asked = Asked { strategy, whose: *whose, op: step.op, costs: Vec::new(), by: None };
        let mut machine = self.gate.with(|at| at.truth.machine(&asked, self.clock.now()));
        let pause = if moves { step.pause } else { Pause::Exactly(0) };
        let (op, cost) = machine.advance(&Step { pause, ..*step });
        self.clock.set(machine.now);
        asked.op = op;
        asked.costs = questions::costs(op, cost, more);
        if looks && self.look(*worker, &asked)? {
            return Ok(());
        }
        let store = Arc::clone(&self.workers[*worker]);
        let (first, of) = (self.last_seen(&asked), asked.clone());
        let task = self.runtime.spawn(async move {
            let Asked { strategy, whose, op, costs, .. } = of;
            let subject = SUBJECTS[whose];
            let decision = Decision::new(&strategy, subject, Op::Peek, &[]);
            let mut out = Verdicts::default();
            store.decide_one(&decision, op, &costs, &mut out).await.map(|()| out)
        });
        asked.by = Some(task.id());
        self.gate.with(|at| at.truth.asks(task.id()));
        let before = self.gate.arrived();
        self.callers.push(Caller { asked, first, task });
        self.settle();
        let is_known =
            self.gate.arrived() == before && self.callers.last().is_some_and(|one| one.task.is_finished());
        self.known += usize::from(is_known);
        Ok(())
    }

    /// Returns true if the answer is cached. A connection looks this up for all calls that arrived together.
    fn look(&mut self, worker: usize, asked: &Asked) -> Result<bool, String> {
        let ([cost], Op::Charge | Op::Peek) = (&asked.costs[..], asked.op) else { return Ok(false) };
        let costs = [*cost];
        let decision = Decision::new(&asked.strategy, SUBJECTS[asked.whose], asked.op, &costs);
        let Some(answers) = known(&*self.workers[worker], &decision) else { return Ok(false) };
        self.known += 1;
        let (first, now) = (self.last_seen(asked), self.clock.now());
        self.gate.with(|at| at.truth.observe(asked, &answers, first, now)).map(|()| true)
    }

    /// The highest place of an answer about the same keys that any caller has received.
    fn last_seen(&self, asked: &Asked) -> usize {
        self.gate.with(|at| at.truth.last_seen(asked))
    }

    /// Every caller whose answer is ready receives it.
    fn finish_callers(&mut self) -> Result<(), String> {
        self.settle();
        let now = self.clock.now();
        let (finished, waiting) = self.callers.drain(..).partition(|caller| caller.task.is_finished());
        self.callers = waiting;
        for Caller { asked, first, task } in finished {
            match self.runtime.block_on(task).unwrap() {
                Ok(answers) => self.gate.with(|at| at.truth.observe(&asked, &answers, first, now))?,
                Err(StoreError::Timeout) => self.gate.with(|at| at.truth.give_up(&asked)),
                Err(error) => return Err(format!("{asked:?}: {error}")),
            }
        }
        Ok(())
    }

    /// Lets every task run until it waits.
    fn settle(&self) {
        self.runtime.block_on(async {
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
        });
    }

    /// No call is believed to be in flight: a new question goes to the store at once.
    fn is_idle(&mut self, rules: &[Rules; 2]) -> Result<(), String> {
        for (whose, subject) in SUBJECTS.into_iter().enumerate() {
            for store in &self.workers {
                let (store, strategy) = (Arc::clone(store), Arc::clone(&rules[usize::from(whose == RAISED)]));
                let before = self.gate.arrived();
                let task = self.runtime.spawn(async move {
                    let decision = Decision::new(&strategy, subject, Op::Peek, &[]);
                    store.decide_one(&decision, Op::Peek, &[NEW], &mut Verdicts::default()).await
                });
                self.settle();
                if self.gate.arrived() == before {
                    return Err(format!("{subject:?} waits, although no call is in flight"));
                }
                task.abort();
                self.settle();
            }
        }
        Ok(())
    }
}

/// A cost that no random case uses.
const NEW: u64 = 987_654_321;

#[test]
fn every_answer_has_a_place_in_one_order() {
    let story = (prop::collection::vec(scoped(), 1..=2), prop::collection::vec(next(), 1..80));
    let mut world = World::new();
    random::tell(file!(), 1, &story, |(limits, story)| {
        let before = world.known;
        world.tell(&limits, &story).map_err(TestCaseError::fail)?;
        Ok(world.known - before)
    });
}
