//! Everything that can happen to a counter that nodes count on their own, and to their places.

use weir_core::algorithm::{Algorithm, Rate};
use weir_core::approximate::{
    ChunkAsk, ChunkOp, CountAsk, CountOp, GivenBack, NodePush, PlaceAnswer, PlaceAsk,
};
use weir_core::key::Subject;
use weir_core::strategy::{
    ApproximateNumbers, ChunkNumbers, FailurePolicy, Field, Limit, OverNumbers, Scope, Strategy,
};
use weir_store::redis::RedisStore;
use weir_store::{CountStore as _, StoreError};
use weir_units::Micros;

/// Does it on keys of its own; what the store refused.
pub(super) async fn everything(store: &RedisStore, name: &str) -> Vec<StoreError> {
    let window = Micros::from_secs(3_600);
    let algorithm = Algorithm::fixed_window(10, window, false, false).unwrap();
    let limit = Limit { name: "each".into(), scope: Scope::of(&[Field::Consumer]), algorithm };
    let numbers = ApproximateNumbers::Over(OverNumbers { max_over: 4, nodes: 2, sync: Micros(100_000) });
    let strategy = Strategy::new("counted", vec![limit], false, FailurePolicy::Error).unwrap();
    let strategy = strategy.with_approximate(numbers).unwrap();
    let counter = store.counter(&strategy, &Subject { consumer: name, ..Subject::default() });
    let mut failures = Vec::new();
    let now = Micros(1_704_067_200_000_000).0 / window.0;
    let push = NodePush { window: now, place: 0, incarnation: 1, sequence: 1, units: 2 };
    let ask = CountAsk { share: 4, most: 20, ..CountAsk::of_push(push, 10) };
    for (op, cost) in [
        (CountOp::Charge, 1),
        (CountOp::AtMost, 2),
        (CountOp::Peek, 2),
        (CountOp::Force, 2),
        (CountOp::Refund, 1),
        (CountOp::Reset, 0),
    ] {
        failures.extend(store.count(&counter, window, CountAsk { op, cost, ..ask }, None).await.err());
    }
    failures.extend(chunks(store, name).await);
    let bound = strategy.approximate().unwrap().bound;
    let places = store.places(&format!("counted-{name}"), &bound);
    let mut held = PlaceAsk::Take;
    for _ in 0..2 {
        match store.place(&places, &bound, held).await {
            Ok(PlaceAnswer::Holds { place, incarnation, .. }) => held = PlaceAsk::Keep { place, incarnation },
            Ok(PlaceAnswer::None) => {}
            Err(error) => failures.push(error),
        }
    }
    if let PlaceAsk::Keep { place, incarnation } = held {
        failures.extend(store.place(&places, &bound, PlaceAsk::Free { place, incarnation }).await.err());
    }
    failures
}

/// The same of limits that nodes take chunks of.
async fn chunks(store: &RedisStore, name: &str) -> Vec<StoreError> {
    let rate = Rate { count: 1, period: Micros::from_secs(100) };
    let window = Algorithm::fixed_window(20, Micros::from_secs(3_600), false, false).unwrap();
    let mut failures = Vec::new();
    for (kind, algorithm) in [("bucket", Algorithm::bucket(20, rate).unwrap()), ("window", window)] {
        let limit = Limit { name: "each".into(), scope: Scope::of(&[Field::Consumer]), algorithm };
        let numbers = ChunkNumbers { chunk: 5, nodes: 2, max_age: Micros::from_secs(10) };
        let strategy = Strategy::new(kind, vec![limit], false, FailurePolicy::Error).unwrap();
        let strategy = strategy.with_approximate(ApproximateNumbers::Chunks(numbers)).unwrap();
        let key = store.counter(&strategy, &Subject { consumer: name, ..Subject::default() });
        let lasts = Micros::from_secs(20);
        let takes = ChunkAsk { give_back: None, op: ChunkOp::Charge, cost: 1, times: 2, chunk: 5, lasts };
        let now = Micros(1_704_067_200_000_000);
        for (units, op) in [(0, ChunkOp::Charge), (1, ChunkOp::AtMost), (20, ChunkOp::Charge)] {
            let give_back = (units > 0).then_some(GivenBack { units, taken: now });
            let times = if op == ChunkOp::AtMost { 1 } else { 2 };
            let ask = ChunkAsk { give_back, op, times, ..takes };
            failures.extend(store.chunk(&key, &algorithm, &ask, None).await.err());
        }
        let ask = ChunkAsk::of_rest(GivenBack { units: 20, taken: now }, lasts);
        failures.extend(store.chunk(&key, &algorithm, &ask, None).await.err());
    }
    failures
}
