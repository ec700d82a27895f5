//! Planted faults: each is a mistake that a change could bring, and is found within a few seeds.

use super::plan::PlantedFault;
use super::{SimulationPlan, SimulationReport};

/// The most seeds that may miss a fault.
const SEEDS: u64 = 50;

/// Words of an offence against the model, and of one against a bound.
const MODEL: &str = "the model";
const OVER: &str = "units were admitted";

/// Finds it: something that is wrong says `how`.
fn finds(name: &str, fault: &PlantedFault, how: &str) {
    let run = |seed| SimulationReport::run(SimulationPlan::from_seed(seed).with(fault.clone()));
    let offence = |report: &SimulationReport| report.offences.iter().find(|why| why.contains(how)).cloned();
    let found = (0..SEEDS).find_map(|seed| Some((seed, offence(&run(seed))?)));
    let (seed, offence) =
        found.unwrap_or_else(|| panic!("{name}: {SEEDS} seeds did not find it by \"{how}\""));
    println!("{name}: found with seed {seed}: {}", offence.chars().take(160).collect::<String>());
}

fn changed(from: &str, to: &str) -> PlantedFault {
    PlantedFault::Script { from: from.to_owned(), to: to.to_owned() }
}

#[test]
fn a_charge_that_counts_twice() {
    let twice = changed("level_1 = level_1 + need_1", "level_1 = level_1 + 2 * need_1");
    finds("charged twice by the script", &twice, MODEL);
    finds("sent twice", &PlantedFault::RepeatedCalls, "ran 2 times");
}

#[test]
fn a_lost_update() {
    let skips = "if kept_1 and now % 5000 == 0 then refusal = nil\n  elseif kept_1 then";
    let lost = changed("if kept_1 then", skips);
    finds("lost update", &lost, MODEL);
    finds("lost update", &lost, OVER);
}

#[test]
fn a_push_that_counts_twice() {
    // What was pushed is forgotten, so the next push counts all of it again.
    finds("pushed twice", &changed("text(math.max(seen, units))", "text(seen)"), MODEL);
}

#[test]
fn a_lease_that_is_granted_twice() {
    // Its permits are not counted, so another holder gets them, too.
    let from = "l.in_flight, l.count = l.in_flight + l.weight, l.count + 1";
    let uncounted = changed(from, "l.in_flight, l.count = l.in_flight, l.count + 1");
    finds("leased twice", &uncounted, "permits are held");
}

#[test]
fn holds_that_do_not_count() {
    let from = "if one.open == 0 or units > limit.limit then return judge(limit, key, one, units) end";
    let uncounted = changed(from, "if true then return judge(limit, key, one, units) end");
    finds("held beside others", &uncounted, "tokens are held or used");
}

#[test]
fn a_hold_that_is_settled_twice() {
    finds(
        "settled twice",
        &changed("if record and record.is_settled then", "if false then"),
        "was settled 2 times",
    );
}

#[test]
fn a_place_that_is_taken_too_early() {
    let early = changed("now >= heartbeat + 2 * length", "now >= heartbeat + length / 2");
    finds("taken too early", &early, MODEL);
}
