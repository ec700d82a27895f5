//! The engines that the tables are run on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use weir::algorithm::{Cells, Kept, LimitVerdict, Op, State, Verdict, decide};
use weir::clock::{Clock, ManualClock};
use weir::key::{self, Subject};
use weir::store::{Decision, Store, StoreError, Verdicts};
use weir::strategy::Strategy;
use weir::units::Micros;

use super::table::Row;

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

impl Store for Pure {
    async fn decide(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> Result<(), StoreError> {
        let Decision { strategy, subject, .. } = decision;
        let mut states = self.states.lock().unwrap();
        let names = strategy.limits().iter().map(|limit| {
            let mut name = Vec::new();
            key::write_name(&mut name, strategy, limit, subject);
            name
        });
        let mut cells = MapCells { names: names.collect(), states: &mut states };
        let now = Clock::Manual(self.clock.clone()).now();
        for &cost in costs {
            let Ok(verdict) = decide(strategy.algorithms(), &mut cells, op, cost, now, &mut out.limits);
            out.decisions.push(verdict);
        }
        Ok(())
    }
}

struct MapCells<'a> {
    names: Vec<Vec<u8>>,
    states: &'a mut HashMap<Vec<u8>, State>,
}

impl Cells for MapCells<'_> {
    type Full = Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.states.get(&self.names[index])
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
}

impl<S: Store> Stored<S> {
    pub fn new(store: S, clock: ManualClock) -> Self {
        Self { store: Arc::new(store), clock }
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
        let decision = Decision { strategy, subject: subject(row), deadline: None };
        let mut out = Verdicts::default();
        let decided = self.at(now).decide(&decision, row.op, &[row.cost], &mut out).await;
        decided.unwrap_or_else(|e| panic!("{}: {e}", strategy.name()));
        let (verdict, limits) = out.get(0).expect("one verdict for one cost");
        assert_eq!(verdict.now, now, "the store decided at another time");
        (*verdict, limits.to_vec())
    }
}

/// A store that others have too.
pub struct Shared<S>(Arc<S>);

impl<S: Store> Store for Shared<S> {
    async fn decide(
        &self,
        decision: &Decision<'_>,
        op: Op,
        costs: &[u64],
        out: &mut Verdicts,
    ) -> Result<(), StoreError> {
        self.0.decide(decision, op, costs, out).await
    }
}

fn subject(row: &Row) -> Subject<'_> {
    Subject { resource: &row.resource, consumer: &row.consumer, ..Subject::default() }
}
