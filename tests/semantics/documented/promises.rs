//! Promises of the document beside the bounds, which `properties/bounds.rs` has.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, Op};
use weir_units::Micros;

use super::strategy;
use crate::properties::machine::Machine;

const START: u64 = 1_704_067_200_000_000;
const SECOND: u64 = 1_000_000;

/// Counts the calls of an even pace that pass: `pace` of them in 60 seconds, from `phase` on.
fn passed(algorithm: Algorithm, pace: u64, phase: u64, calls: u64) -> u64 {
    let mut machine = Machine::new(vec![algorithm]);
    let call = |number: u64| {
        machine.now = Micros(START + phase + (number * 60 * SECOND).div_ceil(pace));
        u64::from(machine.decide(Op::Charge, 1).verdict.allowed)
    };
    (0..calls).map(call).sum()
}

fn algorithm(text: &str) -> Algorithm {
    Arc::clone(&strategy(text)).algorithms()[0]
}

/// An even pace just below a sliding window's limit is never denied, whenever it begins; one of just the
/// limit loses no more than a call a window.
#[test]
fn an_even_pace_in_a_sliding_window() {
    for limit in [2, 3, 7, 60, 97, 1000] {
        let sliding = algorithm(&format!("sliding_window: {{ limit: {limit}, window: 1m }}"));
        for phase in (0..60).map(|part| part * SECOND + part * part * 17) {
            assert_eq!(passed(sliding, limit - 1, phase, 4 * limit), 4 * limit, "{limit} from {phase}");
            assert!(passed(sliding, limit, phase, 4 * limit) >= 4 * limit - 5, "{limit} from {phase}");
        }
    }
}

/// A strict bucketed window lets `buckets` of `buckets + 1` parts of its limit through at an even pace.
#[test]
fn an_even_pace_in_a_strict_bucketed_window() {
    for buckets in [1, 6, 60] {
        let limit = 10 * (buckets + 1);
        let text = format!("bucketed_window: {{ limit: {limit}, window: 1m, buckets: {buckets} }}");
        for phase in (0..60).map(|part| part * SECOND) {
            let (strict, pace) = (algorithm(&text), 10 * buckets);
            assert_eq!(passed(strict, pace, phase, 3 * pace), 3 * pace, "{buckets} from {phase}");
        }
    }
}
