//! The limits of the pictures, the most that passes in them, and the worst that any calls do.
//!
//! `weir simulate` draws the pictures themselves; `tests/operations/simulate.rs` compares them with the files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use weir::simulation::read_trace;
use weir_core::algorithm::Op;
use weir_core::key::{Subject, phase, write_name};
use weir_core::strategy::Strategy;
use weir_units::Micros;

use super::{TEXT, names, strategy};
use crate::properties::machine::Machine;

/// The limits of the pictures.
const LIMITS: &str = include_str!("../../../docs/pictures/algorithms.yaml");

/// 2024-01-01T00:00:00Z: a multiple of every window in the pictures.
const START: u64 = 1_704_067_200_000_000;

/// Length of the windows of the pictures, in columns.
const SPAN: u64 = 6;

/// The text between a limit and its figures.
const FIGURES: &str = "   # most in any ";

/// Every limit with figures has the figures of the program, and a picture.
#[test]
fn figures_are_those_of_the_program() {
    let (mut wrong, mut drawn) = (String::new(), BTreeSet::new());
    for (line, (limit, _)) in TEXT.lines().filter_map(|line| Some((line, line.split_once(FIGURES)?))) {
        let expected = format!("{limit}{FIGURES}{}", figures(limit));
        drawn.insert(limit.split(':').next().unwrap().to_owned());
        if line != expected {
            let _ = writeln!(wrong, "{expected}");
        }
        assert!(LIMITS.contains(&format!(", {limit} }}] }}\n")), "{limit} has no picture");
    }
    assert!(wrong.is_empty(), "these lines of docs/algorithms.md are to be:\n{wrong}");
    assert_eq!(drawn, BTreeSet::from_iter(names()));
}

/// Returns the most that passes in a window: with the calls of the picture, and with any calls.
fn figures(limit: &str) -> String {
    let rules = strategy(limit);
    let is_of_days = limit.contains("calendar");
    let (column, span) = if is_of_days { (14_400_000_000, "24h") } else { (1_000_000, "6s") };
    let calls = if is_of_days {
        include_str!("../../../docs/pictures/days.csv")
    } else {
        include_str!("../../../docs/pictures/calls.csv")
    };
    let mut machine = machine(&rules, "alice");
    let mut passed = Vec::new();
    for call in read_trace(calls).unwrap().calls {
        ask(&mut machine, START + call.at.0, &mut passed);
    }
    let (here, worst) = (most_in(&passed, SPAN * column), worst(&rules, column));
    format!("{span}: {here} here, {worst} at worst")
}

/// One limit of a key that was never used.
fn machine(rules: &Arc<Strategy>, consumer: &str) -> Machine {
    let mut machine = Machine::new(rules.algorithms().to_vec());
    let subject = Subject { resource: "zoo", consumer, ..Subject::default() };
    let mut name = Vec::new();
    write_name(&mut name, rules, &rules.limits()[0], &subject);
    machine.phases = vec![phase(&name)];
    machine
}

fn ask(machine: &mut Machine, at: u64, passed: &mut Vec<u64>) {
    machine.now = Micros(at);
    if machine.decide(Op::Charge, 1).verdict.allowed {
        passed.push(at);
    }
}

/// The most that passed in any half-open span.
fn most_in(passed: &[u64], span: u64) -> usize {
    let from = |(index, first): (usize, &u64)| passed[index..].iter().filter(|&at| at - first < span).count();
    passed.iter().enumerate().map(from).max().unwrap_or(0)
}

/// The most that passes in a span when callers aim for it. First no caller comes, or one. Then, from some moment on,
/// callers ask all the time.
fn worst(rules: &Arc<Strategy>, column: u64) -> usize {
    let (tenth, mut worst) = (column / 10, 0);
    for moment in 1..2 * SPAN * 10 {
        for one_before in [false, true] {
            let mut machine = machine(rules, "alice");
            let mut passed = Vec::new();
            if one_before {
                ask(&mut machine, START, &mut passed);
            }
            for _ in 0..2 * SPAN {
                ask(&mut machine, START + moment * tenth, &mut passed);
            }
            for later in 1..2 * SPAN * 10 {
                for _ in 0..if later % 10 == 0 { SPAN } else { 1 } {
                    ask(&mut machine, START + (moment + later) * tenth, &mut passed);
                }
            }
            worst = worst.max(most_in(&passed, SPAN * column));
        }
    }
    worst
}
