//! The same calls under every algorithm, a column for each step of time; and the worst that any calls do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use weir::algorithm::Op;
use weir::key::{Subject, phase, write_name};
use weir::strategy::Strategy;
use weir::units::Micros;

use super::{TEXT, names, strategy};
use crate::properties::machine::Machine;

/// 2024-01-01T00:00:00Z: a multiple of every window in the pictures.
const START: u64 = 1_704_067_200_000_000;

/// How long the windows of the pictures are, in columns.
const SPAN: u64 = 6;

/// Calls of each column: an even pace; nothing; a burst just before a window ends, and three times what
/// the limit allows; nothing; a burst, and an even pace.
const CALLS: &str = "111111111111     9333333333333333333           9111111111111";

/// Every block that begins with an algorithm is what the program draws under it.
#[test]
fn pictures_are_drawn_by_the_program() {
    let (mut wrong, mut drawn) = (String::new(), BTreeSet::new());
    for block in TEXT.split("```text\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let first = block.lines().next().unwrap_or_default();
        let Some((name, _)) = first.split_once(": {") else { continue };
        let expected = picture(first);
        drawn.insert(name.to_owned());
        if block != expected {
            let _ = write!(wrong, "```text\n{expected}```\n");
        }
    }
    assert!(wrong.is_empty(), "these pictures of docs/algorithms.md are to be:\n{wrong}");
    assert_eq!(drawn, BTreeSet::from_iter(names()));
}

fn picture(first: &str) -> String {
    let rules = strategy(first);
    let is_of_days = first.contains("calendar");
    let (column, unit) = if is_of_days { (14_400_000_000, "4h") } else { (1_000_000, "1s") };
    let span = if is_of_days { "24h" } else { "6s" };
    let mut text = format!("{first}\n\ncalls   |{CALLS}|  a column is {unit}\n");
    let consumers: &[&str] = if rules.algorithms()[0].is_spread() { &["alice", "bob"] } else { &["passed"] };
    let mut most = 0;
    for consumer in consumers {
        let passed = passed(&mut machine(&rules, consumer), column);
        most = most.max(most_in(&passed, SPAN * column));
        let _ = writeln!(text, "{consumer:<8}|{}|", row(&passed, column));
    }
    let _ = writeln!(text, "        {}", format!(" {}", "^     ".repeat(10)).trim_end());
    let worst = worst(&rules, column);
    let _ = writeln!(text, "most in any {span}: {most} here, {worst} at worst");
    text
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

/// When the calls of the picture passed.
fn passed(machine: &mut Machine, column: u64) -> Vec<u64> {
    let mut passed = Vec::new();
    for (index, calls) in (0..).zip(CALLS.chars().map(|calls| calls.to_digit(10).unwrap_or(0).into())) {
        for call in 0..calls {
            ask(machine, START + index * column + call * column / calls, &mut passed);
        }
    }
    passed
}

fn ask(machine: &mut Machine, at: u64, passed: &mut Vec<u64>) {
    machine.now = Micros(at);
    if machine.decide(Op::Charge, 1).verdict.allowed {
        passed.push(at);
    }
}

/// What passed in each column; a dot where calls were made and none did.
fn row(passed: &[u64], column: u64) -> String {
    let in_column = |index: u64| passed.iter().filter(|&&at| (at - START) / column == index).count();
    let columns = (0..).zip(CALLS.chars());
    let drawn = columns.map(|(index, calls)| match (in_column(index), calls) {
        (0, ' ') => " ".to_owned(),
        (0, _) => ".".to_owned(),
        (passed, _) => passed.to_string(),
    });
    drawn.collect()
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
