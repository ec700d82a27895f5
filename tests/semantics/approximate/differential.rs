//! The scripts and their twins answer alike, whatever is asked in whatever order.

use weir_core::approximate::{
    ApproximateBound, CountAsk, CountOp, NodePush, PlaceAnswer, PlaceAsk, Places, SharedCount,
};
use weir_units::Micros;

use super::random::TraceRandom;
use super::scripts::{CountScript, PlacesScript};
use crate::support::shared_redis;

/// Mostly charges.
const OPS: [CountOp; 8] = [
    CountOp::Charge,
    CountOp::Charge,
    CountOp::Charge,
    CountOp::AtMost,
    CountOp::Peek,
    CountOp::Force,
    CountOp::Refund,
    CountOp::Reset,
];

/// Far from any expiry of the server's own clock.
const WINDOW: Micros = Micros(3_600_000_000);
const START: u64 = 1_700_000_000 * 1_000_000;

#[tokio::test]
async fn counters() {
    let mut script = CountScript::on(shared_redis());
    for seed in 0..40 {
        let (mut random, mut twin) = (TraceRandom(seed), SharedCount::default());
        let mut now = START;
        for step in 0..60 {
            // Mostly forward, now and then back.
            now = if random.one_in(15) {
                now - random.below(WINDOW.0)
            } else {
                now + random.below(WINDOW.0 / 10)
            };
            let window = now / WINDOW.0 - u64::from(random.one_in(6));
            let (place, incarnation) = (random.below(3), START + random.below(3));
            let (sequence, units) = (random.below(30), random.below(12));
            let push = NodePush { window, place, incarnation, sequence, units };
            let push = Some(push).filter(|_| !random.one_in(4));
            let op = OPS[random.below(OPS.len() as u64) as usize];
            let (cost, share) = (random.below(4), random.below(4));
            let ask = CountAsk { push, op, cost, times: 1 + random.below(3), limit: 20, share, most: 25 };
            let key = format!("{{approximate}}:count:{seed}");
            let found = script.answer(&key, WINDOW, ask, Micros(now));
            assert_eq!(found, twin.answer(ask, Micros(now), WINDOW), "seed {seed}, step {step}: {ask:?}");
        }
    }
}

#[tokio::test]
async fn places() {
    let mut script = PlacesScript::on(shared_redis());
    for seed in 0..40 {
        let mut random = TraceRandom(seed);
        let nodes = 2 + random.below(4);
        let bound = ApproximateBound::new(10, nodes, WINDOW).unwrap();
        let (mut twin, mut now, mut held) = (Places::new(bound), START, Vec::new());
        for step in 0..60 {
            now += random.below(WINDOW.0);
            let known = held.get(random.below(1 + held.len() as u64) as usize).copied();
            let ask = match (known, random.below(4)) {
                (Some((place, incarnation)), 0) => PlaceAsk::Free { place, incarnation },
                (Some((place, incarnation)), 1 | 2) => PlaceAsk::Keep { place, incarnation },
                _ => PlaceAsk::Take,
            };
            let found = script.answer(&format!("{{approximate}}:places:{seed}"), &bound, ask, Micros(now));
            assert_eq!(found, twin.answer(ask, Micros(now)), "seed {seed}, step {step}: {ask:?}");
            if let PlaceAnswer::Holds { place, incarnation, .. } = found {
                held.push((place, incarnation));
            }
        }
    }
}
