//! Many seeds: 40, or as many as `WEIR_SIMULATION_SEEDS` says. Each fourth runs twice.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use super::{SimulationPlan, SimulationReport};

/// Each seed that this divides runs twice.
const TWICE: u64 = 4;

fn run_of(seed: u64) -> SimulationReport {
    SimulationReport::run(SimulationPlan::from_seed(seed)).without_events()
}

#[test]
fn every_seed_keeps_its_promises() {
    let count = std::env::var("WEIR_SIMULATION_SEEDS").map_or(40, |count| count.parse().unwrap());
    let (next, mut reports) = (AtomicU64::new(0), Vec::new());
    let run = || {
        let seeds = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|seed| *seed < count));
        seeds.map(|seed| (run_of(seed), (seed % TWICE == 0).then(|| run_of(seed).digest))).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        reports.extend(running.into_iter().flat_map(|thread| thread.join().unwrap()));
    });
    reports.sort_by_key(|(report, _)| report.plan.seed);
    let differs =
        reports.iter().filter(|(one, other)| other.as_ref().is_some_and(|other| *other != one.digest));
    let differing: Vec<_> = differs.map(|(report, _)| report.plan.seed).collect();
    let reports: Vec<_> = reports.into_iter().map(|(report, _)| report).collect();
    let mut ends = [0; 6];
    for report in &reports {
        (0..ends.len()).for_each(|end| ends[end] += report.ends[end]);
        let seed = report.plan.seed;
        for offence in &report.offences {
            println!("seed {seed}: {offence}");
        }
    }
    let scripts: u64 = reports.iter().map(|report| report.scripts).sum();
    println!("{count} seeds, {scripts} scripts; ends of calls: {ends:?}");
    let wrong: Vec<_> = reports.iter().filter(|report| !report.offences.is_empty()).collect();
    let wrong: Vec<_> = wrong.iter().map(|report| report.plan.seed).collect();
    assert!(wrong.is_empty(), "wrong seeds: {wrong:?}; `make simulate SEED=…` prints a run");
    assert!(differing.is_empty(), "two runs of these seeds differ: {differing:?}");
    // The runs are of use only if every end happens.
    assert!(ends.iter().all(|end| *end > count), "{ends:?}");
}
