//! The engines that the tables are run on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use weir_testing::DecideOne as _;

use futures_util::future::join_all;
use weir_core::algorithm::{
    Cells, Kept, LimitVerdict, NotOnce, OnceRecord, Op, RecordCells, State, Verdict, decide, decide_once,
};
use weir_core::key::{self, Subject};
use weir_core::strategy::{Field, Limit, Strategy};
use weir_store::coalesce::Coalesce;
use weir_store::denials::Denials;
use weir_store::memory::MemoryStore;
use weir_store::redis::RedisStore;
use weir_store::{Answers, Decision, Part, Store, StoreError, Verdicts};
use weir_time::clock::{Clock, ManualClock};
use weir_units::{LONGEST_SPAN, Micros};

use super::table::Row;
use crate::own_store::store::RedbStore;

/// The pure driver over a map of states.
pub struct Pure {
    states: Mutex<HashMap<Vec<u8>, State>>,
    clock: ManualClock,
}

impl Pure {
    pub fn new(clock: ManualClock) -> Self {
        Self { states: Mutex::default(), clock }
    }
}

/// A store that may be tried without being changed.
pub trait Fork: Store {
    /// The same states on a clock of their own, if they can be had.
    fn fork(&self) -> Option<Pure> {
        None
    }
}

impl Fork for MemoryStore {}
impl Fork for RedbStore {}
impl Fork for RedisStore {}
impl Fork for Coalesce<Denials<RedisStore>> {}

impl Fork for Pure {
    fn fork(&self) -> Option<Pure> {
        let states = Mutex::new(self.states.lock().unwrap().clone());
        Some(Self { states, clock: ManualClock::at(self.clock.now()) })
    }
}

impl Store for Pure {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        decisions.iter().for_each(|decision| self.decide_in_turn(decision, answers));
    }
}

impl Pure {
    fn decide_in_turn(&self, decision: &Decision<'_>, answers: &mut Answers) {
        let Decision { strategy, subject, op, costs, .. } = decision;
        let mut states = self.states.lock().unwrap();
        let names = strategy.limits().iter().map(|limit| {
            let mut name = Vec::new();
            key::write_name(&mut name, strategy, limit, subject);
            name
        });
        let mut cells = MapCells { names: names.collect(), states: &mut states, id: Vec::new() };
        let now = Clock::Manual(self.clock.clone()).now();
        for &cost in *costs {
            let id = decision.part.map_or("", |part| part.id);
            if id.is_empty() {
                let Ok(()) = decide(strategy.algorithms(), &mut cells, *op, cost, now, answers);
                continue;
            }
            cells.id = id.as_bytes().to_vec();
            let decided = decide_once(strategy.algorithms(), &mut cells, *op, cost, now, answers);
            if let Err(NotOnce::OtherCost(known)) = decided {
                answers.fail(1, &StoreError::OtherCost(known));
            }
        }
    }
}

struct MapCells<'a> {
    names: Vec<Vec<u8>>,
    states: &'a mut HashMap<Vec<u8>, State>,
    /// Of the record.
    id: Vec<u8>,
}

impl MapCells<'_> {
    fn record_name(&self) -> Vec<u8> {
        [&self.id[..], b" of ", &self.names[0][..]].concat()
    }
}

impl RecordCells for MapCells<'_> {
    fn record(&self) -> Option<OnceRecord> {
        match self.states.get(&self.record_name()) {
            Some(State::Record(record)) => Some(**record),
            _ => None,
        }
    }

    fn put_record(&mut self, record: OnceRecord) -> Result<(), Infallible> {
        self.states.insert(self.record_name(), State::Record(Box::new(record)));
        Ok(())
    }

    fn clear_record(&mut self) {
        self.states.remove(&self.record_name());
    }
}

impl Cells for MapCells<'_> {
    type Full = Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.states.get(&self.names[index])
    }

    fn phase(&self, index: usize) -> u64 {
        key::phase(&self.names[index])
    }

    fn reserve(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        let mut state = self.states.remove(&self.names[index]);
        change(&mut state);
        if let Some(state) = state {
            self.states.insert(self.names[index].clone(), state);
        }
    }
}

/// A store on a clock that the rows move.
pub struct Stored<S> {
    store: Arc<S>,
    clock: ManualClock,
    /// How many callers with different names make each step at once. All must get the same answer.
    callers: usize,
}

impl<S: Store> Stored<S> {
    pub fn new(store: S, clock: ManualClock) -> Self {
        Self { store: Arc::new(store), clock, callers: 1 }
    }

    pub fn with_callers(self, callers: usize) -> Self {
        Self { callers, ..self }
    }

    /// The store, at a time.
    pub fn at(&self, now: Micros) -> Shared<S> {
        self.clock.set(now);
        Shared(Arc::clone(&self.store))
    }

    /// Decides a row.
    pub async fn step(
        &self,
        strategy: &Arc<Strategy>,
        row: &Row,
        now: Micros,
    ) -> (Verdict, Vec<LimitVerdict>) {
        // Other names get other answers if windows are spread by key, or if a limit counts all callers together.
        let is_named = |limit: &Limit| limit.scope.has(Field::Resource) || limit.scope.has(Field::Consumer);
        let is_alone = |limit: &Limit| is_named(limit) && !limit.algorithm.is_spread();
        let others = if strategy.limits().iter().all(is_alone) { self.callers - 1 } else { 0 };
        let rows = (1..=others).map(|caller| Row {
            resource: format!("{} of {caller}", row.resource),
            consumer: format!("{} of {caller}", row.consumer),
            ..row.clone()
        });
        let rows: Vec<Row> = std::iter::once(row.clone()).chain(rows).collect();
        let answers = join_all(rows.iter().map(|row| self.decide(strategy, row, now))).await;
        assert!(answers.iter().all(|one| *one == answers[0]), "{}: {answers:?}", strategy.name());
        answers.into_iter().next().expect("one at least")
    }

    async fn decide(&self, strategy: &Arc<Strategy>, row: &Row, now: Micros) -> (Verdict, Vec<LimitVerdict>) {
        let part = Part { id: &row.id, ..Part::ALL };
        let part = (!row.id.is_empty()).then_some(&part);
        let decision = Decision { part, ..Decision::new(strategy, subject(row), Op::Peek, &[]) };
        let mut out = Verdicts::default();
        let decided = self.at(now).decide_one(&decision, row.op, &[row.cost], &mut out).await;
        decided.unwrap_or_else(|e| panic!("{}: {e}", strategy.name()));
        let (verdict, limits) = out.get(0).expect("one verdict for one cost");
        assert_eq!(verdict.now, now, "the store decided at another time");
        (*verdict, limits.to_vec())
    }
}

impl<S: Fork> Stored<S> {
    /// How long after the row's attempt the next one would pass, a cost of 1 without other traffic: by
    /// search. It is no part of a verdict, so only an engine that can be tried without being changed
    /// tells it. A peek's own attempt is made first: it asks what would happen if it were one.
    pub async fn next_allowed_after(&self, strategy: &Arc<Strategy>, row: &Row, now: Micros) -> Option<u64> {
        let attempt = Row { op: Op::Charge, cost: 1, ..row.clone() };
        let fork = |pure: &Pure| {
            pure.fork().map(|pure| {
                let clock = pure.clock.clone();
                Stored::new(pure, clock)
            })
        };
        let after = self.store.fork().as_ref().and_then(fork)?;
        if row.op == Op::Peek {
            after.step(strategy, &attempt, now).await;
        }
        let (mut low, mut high) = (0, LONGEST_SPAN.0);
        while low < high {
            let middle = low.midpoint(high);
            let then = fork(&after.store)?;
            let (verdict, _) = then.step(strategy, &attempt, Micros(now.0 + middle)).await;
            if verdict.allowed { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

/// A store that others have too.
pub struct Shared<S>(Arc<S>);

impl<S: Store> Store for Shared<S> {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        self.0.decide(decisions, answers);
    }
}

fn subject(row: &Row) -> Subject<'_> {
    Subject { resource: &row.resource, consumer: &row.consumer, ..Subject::default() }
}
