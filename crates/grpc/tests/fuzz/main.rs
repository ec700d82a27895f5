//! Fuzzing of whole connections, from seeds: `crates/grpc/fuzz` has the same conversations from libFuzzer.

#![allow(clippy::expect_used, clippy::panic)] // all of it is a test

mod caller;
mod conversation;
mod monitor;
mod script;

#[allow(dead_code)] // the conformance test uses other parts of it
#[path = "../common/echo.rs"]
mod echo;
#[allow(dead_code)] // the conformance test uses other parts of it
#[path = "../common/wire.rs"]
mod wire;

use std::panic::catch_unwind;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use weir_time::clock::monotonic;

use conversation::{Tally, fuzz};

/// Duration of the fuzzing, in seconds. However fast the machine is, this many seeds are tried at least.
const SECONDS: &str = "WEIR_FUZZ_SECONDS";
const FEWEST: u64 = 50;

fn seed_to_script(seed: u64) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut bytes = vec![0; 100 + (random.next_u32() % 4_000) as usize];
    random.fill_bytes(&mut bytes);
    bytes
}

#[test]
#[allow(clippy::disallowed_methods)] // the time it takes is set from outside
fn conversations_from_seeds() {
    let seconds = std::env::var(SECONDS).map_or(2, |text| text.parse().expect("seconds"));
    let end = monotonic() + Duration::from_secs(seconds);
    // Which seeds are tried may be chosen, to try one again.
    let first: u64 = std::env::var("WEIR_FUZZ_SEED").map_or(0, |text| text.parse().expect("a seed"));
    let (mut all, mut seed) = (Tally::default(), first);
    while seed < first + FEWEST || monotonic() < end {
        let Ok(one) = catch_unwind(|| fuzz(&seed_to_script(seed))) else { panic!("the seed is {seed}") };
        all.frames_sent += one.frames_sent;
        all.frames_received += one.frames_received;
        all.answers += one.answers;
        all.errors += one.errors;
        seed += 1;
    }
    println!("{} conversations: {all:?}", seed - first);
    assert!(all.answers > 0 && all.errors > 0, "the conversations are too much alike: {all:?}");
}
