use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_config::RedisConfig;
use weir_core::approximate::{ApproximateBound, CountOp};
use weir_core::key::Subject;
use weir_time::clock::{Clock, ManualClock, monotonic};

use super::*;

const SERVER: u64 = 7;
const LIMIT: u64 = 100;
const WINDOW: Micros = Micros::from_secs(10);
/// In the middle of the window of number 1.
const NOW: Micros = Micros::from_secs(15);

/// SilentCounts whatever is pushed, if it answers.
#[derive(Clone, Default)]
struct SilentCounts(Arc<Mutex<SilentAsks>>);

#[derive(Default)]
struct SilentAsks {
    is_silent: bool,
    /// The units of each push, and how many were sent when the place was freed.
    pushed: Vec<u64>,
    freed_after: Option<usize>,
}

impl CountStore for SilentCounts {
    fn counter(&self, _: &Strategy, _: &Subject<'_>) -> CounterKey {
        CounterKey { name: (*b"key").into(), slot: 0 }
    }

    fn server_of(&self, _: &CounterKey) -> Option<u64> {
        Some(SERVER)
    }

    async fn count(
        &self,
        _: &CounterKey,
        _: Micros,
        ask: CountAsk,
        _: Option<Instant>,
    ) -> Result<CountAnswer, StoreError> {
        let units = ask.push.map_or(0, |push| push.units);
        let is_silent = {
            let mut asked = self.0.lock();
            asked.pushed.push(units);
            asked.is_silent
        };
        if is_silent {
            std::future::pending::<()>().await;
        }
        Ok(CountAnswer {
            passed: 1,
            units: 0,
            at: LIMIT,
            before: units,
            window: NOW.0 / WINDOW.0,
            count: units,
            version: 1,
            refunded: 0,
            over: 0,
            now: NOW,
        })
    }

    fn places(&self, strategy: &str, _: &ApproximateBound) -> CounterKey {
        CounterKey { name: strategy.as_bytes().into(), slot: 0 }
    }

    async fn place(
        &self,
        _: &CounterKey,
        _: &ApproximateBound,
        ask: PlaceAsk,
    ) -> Result<PlaceAnswer, StoreError> {
        let mut asked = self.0.lock();
        if matches!(ask, PlaceAsk::Free { .. }) {
            asked.freed_after = Some(asked.pushed.len());
        }
        Ok(PlaceAnswer::None)
    }
}

/// A node that holds a place, with keys of which it has admitted 3 units each.
fn owing(keys: u128) -> Upkeep<SilentCounts> {
    let clock = Clock::Manual(ManualClock::at(NOW));
    let node = ApproximateShared::new(&RedisConfig::default(), &clock);
    node.0.clocks.learn(SERVER, NOW, NOW, NOW);
    let bound = ApproximateBound::new(90, 10, WINDOW).unwrap();
    let set = Arc::new(PlaceSet::new(1, "api".into(), "api".into(), bound));
    // Got in the window before, so keys need not begin at the store (R2).
    set.hold(Some(HeldPlace::new(&bound, (0, 1), Micros(NOW.0 - WINDOW.0), NOW, Micros::ZERO)));
    let counts = SilentCounts::default();
    let key = counts.places("api", &bound);
    let moment = NodeMoment { now: node.0.clock.now(), clocks: &node.0.clocks };
    for digest in 0..keys {
        let entry = || Some(KeyEntry::new(&set, key.clone(), SERVER));
        let window = moment.window(&set, SERVER).unwrap();
        let charge = (CountOp::Charge, 3, LIMIT);
        let decided = node.0.table.with_new(digest, entry, |entry| entry.decide(&window, charge, digest));
        assert!(decided.flatten().is_some(), "the node decides");
    }
    Upkeep { node, counts, set, key }
}

/// A push that is on its way when the background work ends is not answered: it goes again, before the place is another's.
/// The next holder would admit its share of units that nobody has counted.
#[tokio::test(start_paused = true)]
async fn a_push_that_was_given_up_goes_again_before_the_place_is_free() {
    let upkeep = owing(1);
    upkeep.counts.0.lock().is_silent = true;
    let push = upkeep.push_all(upkeep.set.take_owing(), Micros::ZERO);
    assert!(tokio::time::timeout(Duration::from_secs(1), push).await.is_err(), "it waits for the answer");
    upkeep.counts.0.lock().is_silent = false;
    upkeep.end().await;
    let asked = upkeep.counts.0.lock();
    assert_eq!((&asked.pushed[..], asked.freed_after), (&[3, 3][..], Some(2)));
}

/// Pushes of many keys are spread over the time between two rounds; those of a node that ends are not.
#[tokio::test(start_paused = true)]
async fn pushes_of_many_keys_are_spread() {
    let groups = 5;
    let sync = Micros(100_000);
    for (time, least) in [(sync, 80), (Micros::ZERO, 0)] {
        let upkeep = owing((groups * PUSHED_TOGETHER) as u128);
        let begun = monotonic();
        upkeep.push_all(upkeep.set.take_owing(), time).await;
        let took = (monotonic() - begun).as_millis();
        assert!((least..=least + 10).contains(&took), "{took} ms");
        let asked = upkeep.counts.0.lock();
        assert_eq!(asked.pushed.len(), groups * PUSHED_TOGETHER);
        assert!(upkeep.owing().is_empty());
    }
}
