//! Random traces of holds on the pure driver, compared with the definition in every answer.
//!
//! The definition keeps each part by itself, and counts anew at each question. Faults are planted between the driver and its
//! states: each must be found.

mod definition;
mod faulty;
mod steps;
mod traces;

use self::faulty::Fault;
use self::traces::trace;

const TRACES: u64 = 10_000;

#[test]
fn answers_are_those_of_the_definition() {
    let mut holds = 0;
    for seed in 0..TRACES {
        holds += trace(seed, Fault::None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    println!("{TRACES} traces, {holds} holds");
    assert!(holds > TRACES, "{holds} holds");
}

#[test]
fn planted_faults_are_found() {
    for fault in Fault::ALL {
        let found = (0..TRACES).find_map(|seed| trace(seed, fault).err().map(|wrong| (seed, wrong)));
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} is not found");
    }
}
