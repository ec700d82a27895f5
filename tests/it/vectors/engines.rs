//! The engines that the tables are run on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use weir::algorithm::{Cells, Kept, LimitVerdict, Op, State, Verdict, decide};
use weir::clock::ManualClock;
use weir::key::{self, Subject};
use weir::store::{Decision, Store, Verdicts};
use weir::strategy::Strategy;
use weir::units::{LONGEST_SPAN, Micros};

use super::table::Row;

/// Something that decides rows.
pub trait Engine {
    async fn step(
        &mut self,
        strategy: &Arc<Strategy>,
        row: &Row,
        now: Micros,
    ) -> (Verdict, Vec<LimitVerdict>);

    /// How long after the row's attempt the next one would pass, a cost of 1 without other traffic. It is
    /// no part of a verdict, so only the engine that can be tried without being changed tells it.
    async fn next_allowed_after(&self, _: &Arc<Strategy>, _: &Row, _: Micros) -> Option<u64> {
        None
    }
}

/// The pure driver over a map of states.
#[derive(Default, Clone)]
pub struct Pure(HashMap<Vec<u8>, State>);

impl Engine for Pure {
    async fn step(
        &mut self,
        strategy: &Arc<Strategy>,
        row: &Row,
        now: Micros,
    ) -> (Verdict, Vec<LimitVerdict>) {
        let subject = subject(row);
        let names = strategy.limits().iter().map(|limit| {
            let mut name = Vec::new();
            key::write_name(&mut name, strategy, limit, &subject);
            name
        });
        let mut cells = MapCells { names: names.collect(), states: &mut self.0 };
        let mut limits = Vec::new();
        let Ok(verdict) = decide(strategy.algorithms(), &mut cells, row.op, row.cost, now, &mut limits);
        (verdict, limits)
    }

    /// By search. A peek's own attempt is made first: it asks what would happen if it were one.
    async fn next_allowed_after(&self, strategy: &Arc<Strategy>, row: &Row, now: Micros) -> Option<u64> {
        let attempt = |op| Row { op, cost: 1, ..row.clone() };
        let mut after = self.clone();
        if row.op == Op::Peek {
            after.step(strategy, &attempt(Op::Charge), now).await;
        }
        let (mut low, mut high) = (0, LONGEST_SPAN.0);
        while low < high {
            let middle = low.midpoint(high);
            let mut then = after.clone();
            let (verdict, _) = then.step(strategy, &attempt(Op::Charge), Micros(now.0 + middle)).await;
            if verdict.allowed { high = middle } else { low = middle + 1 }
        }
        Some(low)
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
    store: S,
    clock: ManualClock,
}

impl<S: Store> Stored<S> {
    pub fn new(store: S, clock: ManualClock) -> Self {
        Self { store, clock }
    }
}

impl<S: Store> Engine for Stored<S> {
    async fn step(
        &mut self,
        strategy: &Arc<Strategy>,
        row: &Row,
        now: Micros,
    ) -> (Verdict, Vec<LimitVerdict>) {
        self.clock.set(now);
        let decision = Decision { strategy, subject: subject(row), deadline: None };
        let mut out = Verdicts::default();
        let decided = self.store.decide(&decision, row.op, &[row.cost], &mut out).await;
        decided.unwrap_or_else(|e| panic!("{}: {e}", strategy.name()));
        let (verdict, limits) = out.get(0).expect("one verdict for one cost");
        assert_eq!(verdict.now, now, "the store decided at another time");
        (*verdict, limits.to_vec())
    }
}

fn subject(row: &Row) -> Subject<'_> {
    Subject { resource: &row.resource, consumer: &row.consumer, group: None }
}
