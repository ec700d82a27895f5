//! Planted faults: each is a mistake that a change could bring, and is found within a few seeds.

use super::plan::PlantedFault;
use super::{SimulationPlan, SimulationReport};

/// The most seeds that may miss a fault.
const SEEDS: u64 = 50;

/// Finds it, and returns how it was noticed.
fn finds(name: &str, fault: &PlantedFault) -> String {
    let run = |seed| SimulationReport::of(SimulationPlan::of(seed).with(fault.clone()));
    let found = (0..SEEDS).map(run).find(|report| !report.offences.is_empty());
    let report = found.unwrap_or_else(|| panic!("{name}: {SEEDS} seeds did not find it"));
    let offence = report.offences.into_iter().next().unwrap();
    println!(
        "{name}: found with seed {}: {}",
        report.plan.seed,
        offence.chars().take(160).collect::<String>()
    );
    offence
}

fn changed(from: &str, to: &str) -> PlantedFault {
    PlantedFault::Script { from: from.to_owned(), to: to.to_owned() }
}

#[test]
fn a_charge_that_counts_twice() {
    finds(
        "charged twice by the script",
        &changed("level_1 = level_1 + need_1", "level_1 = level_1 + 2 * need_1"),
    );
}

#[test]
fn a_call_that_is_sent_twice() {
    let how = finds("sent twice", &PlantedFault::RepeatedCalls);
    assert!(how.contains("times") || how.contains("the model"), "{how}");
}

#[test]
fn a_lost_update() {
    let skips = "if kept_1 and now % 5000 == 0 then refusal = nil\n  elseif kept_1 then";
    finds("lost update", &changed("if kept_1 then", skips));
}

#[test]
fn a_push_that_counts_twice() {
    // What was pushed is forgotten, so the next push counts all of it again.
    finds("pushed twice", &changed("text(math.max(seen, units))", "text(seen)"));
}

#[test]
fn a_lease_that_is_granted_twice() {
    // Its permits are not counted, so another holder gets them, too.
    let from = "l.in_flight, l.count = l.in_flight + l.weight, l.count + 1";
    let how = finds("leased twice", &changed(from, "l.in_flight, l.count = l.in_flight, l.count + 1"));
    assert!(how.contains("permits are held"), "{how}");
}

#[test]
fn a_place_that_is_taken_too_early() {
    finds("taken too early", &changed("now >= heartbeat + 2 * length", "now >= heartbeat + length / 2"));
}
