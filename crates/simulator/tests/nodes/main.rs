//! Nodes of Weir against servers of Redis in this process, on virtual time: each seed is one run, every time.
//!
//! The nodes have the limiter and the stores of the service. Their time, timers, connections and random numbers are those
//! of the simulation. What goes wrong (`world/faults.rs`) comes from the seed, and `checks.rs` has what each run must keep.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests read the environment

mod checks;
mod log;
mod long_seeds;
mod network;
mod node;
mod plan;
mod planted;
mod printed;
mod random;
mod replayed;
mod run;
mod setup;
mod timeline;
mod world;

use self::plan::SimulationPlan;
use self::run::SimulationReport;

/// Runs a plan. Fails with what is wrong, and says how to see all of it.
fn passes(plan: SimulationPlan) -> SimulationReport {
    let report = SimulationReport::run(plan);
    let seed = report.plan.seed;
    let offences = report.offences.join("\n");
    assert!(offences.is_empty(), "seed {seed}: {offences}\n`make simulate SEED={seed}` prints the run");
    report
}
