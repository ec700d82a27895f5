//! The engines that the tables are run on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use weir::algorithm::{Cells, Kept, LimitVerdict, State, Verdict, decide};
use weir::clock::ManualClock;
use weir::key::{self, Subject};
use weir::store::{Decision, Part, Store, Verdicts};
use weir::strategy::Strategy;
use weir::units::Micros;

use super::table::Row;

/// Something that decides rows.
pub trait Engine {
    async fn step(
        &mut self,
        strategy: &Arc<Strategy>,
        row: &Row,
        now: Micros,
    ) -> (Verdict, Vec<LimitVerdict>);
}

/// The pure driver over a map of states.
#[derive(Default)]
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
        let decision = Decision { strategy, subject: subject(row), deadline: None, part: Part::ALL };
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
