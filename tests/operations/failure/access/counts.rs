//! Everything that can happen to a counter that nodes count on their own, and to their places.

use weir_core::algorithm::Algorithm;
use weir_core::approximate::{CountAsk, CountOp, NodePush, PlaceAnswer, PlaceAsk};
use weir_core::key::Subject;
use weir_core::strategy::{ApproximateNumbers, FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{CountStore as _, StoreError};
use weir_units::Micros;

/// Does it on keys of its own; what the store refused.
pub(crate) async fn everything(store: &RedisStore, name: &str) -> Vec<StoreError> {
    let window = Micros::from_secs(3_600);
    let algorithm = Algorithm::fixed_window(10, window, false, false).unwrap();
    let limit = Limit { name: "each".into(), scope: Scope::new(&[Field::Consumer]), algorithm };
    let numbers = ApproximateNumbers { max_over: 4, nodes: 2, sync: Micros(100_000) };
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
