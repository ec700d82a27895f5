//! The run of a seed, for people: `make simulate SEED=7`.

use super::{SimulationPlan, SimulationReport};

#[test]
fn the_run_of_a_seed() {
    let seed = std::env::var("WEIR_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let report = SimulationReport::run(SimulationPlan::from_seed(seed.unwrap_or(0)));
    if seed.is_some() {
        report.lines().for_each(|line| println!("{line}"));
        println!("{:?}", report.plan);
        report.offences.iter().for_each(|offence| println!("WRONG: {offence}"));
    }
    println!("{} scripts; ends of calls: {:?}; digest {}", report.scripts, report.ends, report.digest);
    assert!(report.offences.is_empty(), "{:?}", report.offences);
}
