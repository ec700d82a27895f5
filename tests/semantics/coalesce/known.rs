//! A cached denial saves the call to the store. That includes callers that wait, and callers denied in the same call.

use weir_core::algorithm::Op;
use weir_core::strategy::Field;
use weir_units::Micros;

use super::{World, patient};

fn world() -> World {
    World::knowing(patient(), &[&[Field::Resource, Field::Consumer]], Micros::from_secs(3600))
}

/// Waiting callers once made a second call, although the call that they waited for had answered their question.
#[tokio::test]
async fn a_waiting_caller_gets_the_denial_that_the_call_in_flight_cached() {
    let world = world();
    let first = world.charge(11).await;
    let (second, third) = (world.charge(11).await, world.charge(11).await);
    world.let_through(1).await;
    for caller in [first, second, third] {
        assert_eq!(caller.await.unwrap(), Ok((false, 10)));
    }
    assert_eq!(world.calls(), [(Op::Charge, vec![11])]);
}

/// A charge raises the epoch of its keys. That once dropped the cached denials of later decisions of the same call,
/// so the store was asked again for each unit that was charged.
#[tokio::test]
async fn what_was_denied_together_with_a_charge_is_known() {
    let world = world();
    let first = world.charge(9).await;
    let others = [world.charge(4).await, world.charge(1).await, world.charge(3).await, world.charge(3).await];
    world.let_through(2).await;
    assert_eq!(first.await.unwrap(), Ok((true, 1)));
    let mut answers = Vec::new();
    for other in others {
        answers.push(other.await.unwrap());
    }
    assert_eq!(answers, [Ok((false, 1)), Ok((true, 0)), Ok((false, 0)), Ok((false, 0))]);
    assert_eq!(world.charge(3).await.await.unwrap(), Ok((false, 0)));
    assert_eq!(world.calls(), [(Op::Charge, vec![9]), (Op::Charge, vec![4, 1, 3, 3])]);
    // The denial before the charge is out of date: the charge lowered `remaining`.
    let again = world.charge(4).await;
    world.let_through(1).await;
    assert_eq!(again.await.unwrap(), Ok((false, 0)));
    assert_eq!(world.calls().len(), 3);
}

/// A store that hangs does not delay a caller whose denial is cached.
#[tokio::test]
async fn a_cached_denial_does_not_wait_for_the_call_in_flight() {
    let world = world();
    let denied = world.charge(11).await;
    world.let_through(1).await;
    assert_eq!(denied.await.unwrap(), Ok((false, 10)));
    let hangs = world.charge(2).await;
    assert_eq!(world.charge(11).await.await.unwrap(), Ok((false, 10)));
    assert_eq!(world.calls().len(), 2);
    world.let_through(1).await;
    assert_eq!(hangs.await.unwrap(), Ok((true, 8)));
}

/// Several costs are answered from the cache only if all of them are cached and none of their waits is over.
#[tokio::test]
async fn partly_cached_costs_are_asked_together() {
    let world = world();
    let full = world.charge(10).await;
    let denied = world.charge(1).await;
    world.let_through(2).await;
    assert_eq!(full.await.unwrap(), Ok((true, 0)));
    assert_eq!(denied.await.unwrap(), Ok((false, 0)));
    let first = world.charge(2).await;
    let (zero, second) = (world.charge(0).await, world.charge(2).await);
    world.let_through(2).await;
    assert_eq!(first.await.unwrap(), Ok((false, 0)));
    assert_eq!(zero.await.unwrap(), Ok((true, 0)));
    assert_eq!(second.await.unwrap(), Ok((false, 0)));
    assert_eq!(world.calls()[2..], [(Op::Charge, vec![2]), (Op::Charge, vec![0, 2])]);
    world.clock.set(Micros(1_704_067_260_000_000));
    let fresh = world.charge(2).await;
    world.let_through(1).await;
    assert_eq!(fresh.await.unwrap(), Ok((true, 8)));
}
