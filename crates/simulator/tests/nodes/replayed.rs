//! A seed is one run, every time.

use super::SimulationPlan;

use super::passes;

#[test]
fn a_run_without_faults_is_exact() {
    for seed in 0..2 {
        let plan =
            SimulationPlan { has_faults: false, has_exceptions: false, ..SimulationPlan::from_seed(seed) };
        let report = passes(plan);
        println!("{:?} {} scripts", report.ends, report.scripts);
        let [admitted, denied, local, local_denied, policy, failed] = report.ends;
        assert!(admitted > 300 && denied > 300, "{:?}", report.ends);
        assert_eq!((local, local_denied, policy, failed), (0, 0, 0, 0), "{:?}", report.ends);
    }
}

#[test]
fn two_runs_of_a_seed_are_the_same() {
    for seed in 1..5 {
        let [first, second] =
            [passes(SimulationPlan::from_seed(seed)), passes(SimulationPlan::from_seed(seed))];
        for (line, (one, other)) in first.lines().zip(second.lines()).enumerate() {
            if one != other {
                let near = |report: &super::SimulationReport| {
                    report
                        .lines()
                        .skip(line.saturating_sub(24))
                        .take(28)
                        .map(|l| l.chars().take(190).collect::<String>())
                        .collect::<Vec<_>>()
                        .join("\n")
                };
                panic!("seed {seed}, line {line}:\n{}\n--\n{}", near(&first), near(&second));
            }
        }
        assert_eq!(first.digest, second.digest, "seed {seed}");
    }
    let digest = |seed| passes(SimulationPlan::from_seed(seed)).digest;
    assert_ne!(digest(1), digest(2));
}
