//! On memory, leases end on time whatever the wall clock does, at any age of the process.

use weir_config::MemoryConfig;
use weir_leases::model::{LeaseOp, LeaseOutcome};
use weir_leases::store::{LeaseStore as _, ProcessLeases};
use weir_store::memory::MemoryStore;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::world::{self, START, ask};

const TTL: u64 = 30_000_000;
const TEN_YEARS: i64 = 3650 * 86_400;

#[tokio::test]
async fn leases_end_on_time_and_never_hold_more_than_the_limit() {
    for age in [0, 2, 5 * 3600] {
        for steps in [&[-1][..], &[-3600], &[-TEN_YEARS], &[3600], &[3600, -3600], &[-TEN_YEARS, TEN_YEARS]] {
            end_on_time(age, steps).await;
        }
    }
}

async fn end_on_time(age: u64, steps: &[i64]) {
    let clock = ManualClock::at(Micros(START));
    let memory = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
    let store = ProcessLeases::new(memory.states());
    let strategy = world::strategy("exports", world::numbers(3));
    let acquire = LeaseOp::Acquire { weight: 1, ttl: Micros(TTL) };
    let call = |id: String| {
        let (store, strategy) = (&store, &strategy);
        async move { store.lease(&ask(strategy, &id, acquire)).await.unwrap().outcome }
    };
    let pass = |time: u64| clock.set(Micros(clock.now().0 + time));
    let what = format!("up {age} s, {steps:?}");
    pass(age * 1_000_000);
    let held = |after: u64, is_new| LeaseOutcome::Held { expires_after: Micros(after), is_new };
    for id in 0..3 {
        assert_eq!(call(format!("first {id}")).await, held(TTL, true), "{what}");
    }
    let part = TTL / (steps.len() as u64 + 1);
    for (number, step) in steps.iter().enumerate() {
        clock.step(Micros(clock.now().0.saturating_add_signed(step * 1_000_000)));
        pass(part);
        memory.sweep();
        let left = TTL - part * (number as u64 + 1);
        assert_eq!(call("first 0".to_owned()).await, held(left, false), "{what}");
        let refused = call(format!("second {number}")).await;
        assert!(matches!(refused, LeaseOutcome::Refused { bound: Some(Micros(bound)), .. } if bound == left));
    }
    pass(TTL - part * steps.len() as u64 - 1);
    assert!(matches!(call("second".to_owned()).await, LeaseOutcome::Refused { .. }), "{what}");
    pass(1);
    for id in 0..3 {
        assert_eq!(call(format!("third {id}")).await, held(TTL, true), "{what}");
    }
    // Nothing calls again: the sweep drops the leases.
    pass(TTL);
    (0..16).for_each(|_| memory.sweep());
    assert_eq!(memory.stats().keys, 0, "{what}");
}
