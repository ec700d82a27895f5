//! The cost of one decision in the pure driver, engine by engine: no store, no lock, no key.
//!
//! `cargo bench --bench engines`
#![allow(missing_docs, clippy::unwrap_used)]

use std::convert::Infallible;

use divan::{Bencher, black_box};
use weir_core::algorithm::{Algorithm, Cells, Kept, Op, Rate, State, decide};
use weir_store::Answers;
use weir_units::Micros;

fn main() {
    divan::main();
}

const START: Micros = Micros(1_700_000_000_000_000);

#[derive(Default)]
struct Cell([Option<State>; 2]);

impl Cells for Cell {
    type Full = Infallible;
    fn get(&self, index: usize) -> Option<&State> {
        self.0[index].as_ref()
    }
    fn phase(&self, _: usize) -> u64 {
        0
    }

    fn reserve(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }
    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        change(&mut self.0[index]);
    }
}

fn bucket(burst: u64) -> Algorithm {
    Algorithm::bucket(burst, Rate { count: 1_000_000, period: Micros::from_secs(1) }).unwrap()
}

fn window(limit: u64) -> Algorithm {
    Algorithm::fixed_window(limit, Micros::from_secs(60), false, false).unwrap()
}

fn interval(capacity: u64) -> Algorithm {
    Algorithm::interval_refill(capacity, 1_000, Micros::from_millis(1), false).unwrap()
}

fn log(limit: u64) -> Algorithm {
    Algorithm::sliding_log(limit, Micros::from_millis(1)).unwrap()
}

fn login(limit: u64) -> Algorithm {
    Algorithm::strict_log(limit, Micros::from_secs(3600), true, Micros(1)).unwrap()
}

fn sliding(limit: u64) -> Algorithm {
    Algorithm::sliding_window(limit, Micros::from_secs(60)).unwrap()
}

fn slots(limit: u64) -> Algorithm {
    Algorithm::bucketed_window(limit, Micros(60), 60, true).unwrap()
}

/// One decision a microsecond on one key.
fn run(bencher: Bencher<'_, '_>, limits: &[Algorithm]) {
    let (mut cells, mut now, mut out) = (Cell::default(), START, Answers::default());
    bencher.bench_local(|| {
        now.0 += 1;
        out.each.clear();
        out.limits.clear();
        let Ok(()) = decide(limits, &mut cells, Op::Charge, black_box(1), now, &mut out);
        black_box(&out);
    });
}

#[divan::bench]
fn bucket_allowed(bencher: Bencher<'_, '_>) {
    run(bencher, &[bucket(1_000_000)]);
}

#[divan::bench]
fn bucket_denied(bencher: Bencher<'_, '_>) {
    run(bencher, &[Algorithm::uniform(Micros::from_secs(3600)).unwrap()]);
}

#[divan::bench]
fn window_allowed(bencher: Bencher<'_, '_>) {
    run(bencher, &[window(1 << 50)]);
}

#[divan::bench]
fn interval_allowed(bencher: Bencher<'_, '_>) {
    run(bencher, &[interval(1_000_000)]);
}

#[divan::bench]
fn log_of_a_thousand(bencher: Bencher<'_, '_>) {
    run(bencher, &[log(1_000)]);
}

#[divan::bench]
fn log_of_denied_attempts(bencher: Bencher<'_, '_>) {
    run(bencher, &[login(1_000)]);
}

#[divan::bench]
fn sliding_allowed(bencher: Bencher<'_, '_>) {
    run(bencher, &[sliding(1 << 50)]);
}

#[divan::bench]
fn slots_of_sixty_allowed(bencher: Bencher<'_, '_>) {
    run(bencher, &[slots(1 << 50)]);
}

#[divan::bench]
fn two_limits(bencher: Bencher<'_, '_>) {
    run(bencher, &[bucket(1_000_000), window(1 << 50)]);
}
