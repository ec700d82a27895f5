//! A service that takes three times as long, as `vegas` sees it: a simulated one, on a clock that the test moves.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_core::strategy::{ConcurrencyNumbers, LimitSource, ProbeRule, Strategy};
use weir_leases::model::{LeaseOp, WorkOutcome};
use weir_leases::store::LeaseStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world;

const QUICK: Micros = Micros::from_millis(10);
const SLOW: Micros = Micros::from_millis(30);

weir_testing::on_every_engine!(world, slows_down);

/// The limit falls, and stays low until the shortest time is measured again: after 15 to 30 pieces of work per permit of
/// the limit before.
async fn slows_down(store: &impl LeaseStore, clock: &ManualClock) {
    let mut service = Service::new(store, clock);
    let quick = service.work(QUICK, 1000).await;
    assert_eq!(quick.iter().max(), Some(&100));
    assert_eq!(quick.last(), Some(&100));

    let slow = service.work(SLOW, 500).await;
    let fallen = slow.iter().position(|limit| *limit <= 9);
    assert!(fallen.is_some_and(|pieces| pieces < 250), "it did not fall: {slow:?}");
    let highest = slow[fallen.unwrap()..].iter().max().unwrap();
    assert!(*highest <= 9, "it was {highest} soon afterwards");

    // Now 30 ms is what this work takes.
    let later = service.work(SLOW, 3000).await;
    assert_eq!(later.last(), Some(&100));
}

/// A service whose callers use every permit. Its work takes the same time, however much of it there is.
struct Service<'a, S> {
    store: &'a S,
    clock: &'a ManualClock,
    strategy: Arc<Strategy>,
    /// End of each piece of work, and its number.
    working: BTreeSet<(Micros, u64)>,
    begun: u64,
    limit: u64,
}

impl<'a, S: LeaseStore> Service<'a, S> {
    fn new(store: &'a S, clock: &'a ManualClock) -> Self {
        let rule = world::adaptive((20, 1, 100), world::vegas(1.0, ProbeRule::PerPermit(30.0)));
        let numbers = ConcurrencyNumbers { source: LimitSource::Adaptive(rule), ..world::numbers(1) };
        let strategy = world::strategy("slower", numbers);
        Self { store, clock, strategy, working: BTreeSet::new(), begun: 0, limit: 20 }
    }

    /// Ends so many pieces of work, and returns the limit after each.
    async fn work(&mut self, takes: Micros, pieces: usize) -> Vec<u64> {
        let mut limits = Vec::with_capacity(pieces);
        for _ in 0..pieces {
            while (self.working.len() as u64) < self.limit {
                self.begin(takes).await;
            }
            let (ends, number) = self.working.pop_first().unwrap();
            self.clock.set(ends);
            let op = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
            self.call(number, op).await;
            limits.push(self.limit);
        }
        limits
    }

    async fn begin(&mut self, takes: Micros) {
        let ends = Micros(self.clock.now().0 + takes.0);
        self.begun += 1;
        self.call(self.begun, LeaseOp::Acquire { weight: 1, ttl: Micros::from_secs(30) }).await;
        self.working.insert((ends, self.begun));
    }

    async fn call(&mut self, number: u64, op: LeaseOp) {
        let id = number.to_string();
        self.limit = self.store.lease(&world::ask(&self.strategy, &id, op)).await.unwrap().limit;
    }
}
