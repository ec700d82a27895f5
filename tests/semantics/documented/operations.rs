//! The pictures of operations in docs/algorithms.md: a call in each second, and what it got.

use std::fmt::Write as _;

use weir_core::algorithm::Op;
use weir_units::Micros;

use super::{TEXT, strategy};
use crate::properties::machine::{Machine, START};

const SECOND: u64 = 1_000_000;

/// One operation under one limit.
struct Picture {
    title: &'static str,
    /// As the configuration has it.
    limit: &'static str,
    /// The calls of each second, by a character: a digit is a plain call of this cost.
    calls: &'static str,
    /// The operation and the cost of each other character.
    operation: (Op, u64),
    /// The text below the calls.
    shown: &'static str,
}

const PICTURES: [Picture; 3] = [
    Picture {
        title: "R reserves a call, with a max_wait of 4s",
        limit: "token_bucket: { rate: 1/2s, burst: 2 }",
        calls: "RRRRR   RR1",
        operation: (Op::Reserve { max_wait: Micros(4 * SECOND) }, 1),
        shown: "wait",
    },
    Picture {
        title: "A asks for at most 3",
        limit: "token_bucket: { rate: 1/1s, burst: 6 }",
        calls: "AAAAA     AA",
        operation: (Op::AtMost, 3),
        shown: "granted",
    },
    Picture {
        title: "D is a debit of 8",
        limit: "max_debt: 4, token_bucket: { rate: 1/1s, burst: 5 }",
        calls: "33D1111111111D111",
        operation: (Op::Force, 8),
        shown: "charged",
    },
];

#[test]
fn pictures_of_operations_are_drawn_by_the_program() {
    let mut wrong = String::new();
    for picture in &PICTURES {
        let drawn = drawn(picture);
        if !TEXT.contains(&drawn) {
            let _ = writeln!(wrong, "{drawn}");
        }
    }
    assert!(wrong.is_empty(), "docs/algorithms.md is to have these pictures:\n{wrong}");
}

/// Waits in seconds, and costs; `x` is denied.
fn drawn(picture: &Picture) -> String {
    let limits = strategy(picture.limit).algorithms().to_vec();
    let mut machine = Machine::new(limits.clone());
    machine.now = Micros(START);
    let mut shown = String::new();
    for call in picture.calls.chars() {
        let (op, cost) = match call.to_digit(10) {
            Some(cost) => (Op::Charge, cost.into()),
            None => picture.operation,
        };
        let answer = if call == ' ' { None } else { Some(machine.decide(op, cost)) };
        shown += &match answer {
            None => " ".to_owned(),
            Some(answer) if !answer.verdict.allowed => "x".to_owned(),
            Some(answer) if picture.shown == "wait" => (answer.verdict.wait.0 / SECOND).to_string(),
            Some(answer) if op == Op::Force => {
                limits[0].debited(answer.limits[0].level_before, cost).to_string()
            }
            Some(answer) => answer.verdict.granted.to_string(),
        };
        machine.now.0 += SECOND;
    }
    let Picture { title, limit, calls, shown: name, .. } = picture;
    format!(
        "```text\n{limit}\n\ncalls    |{calls}|  a column is 1s; {title}\n{name:<9}|{shown}|  x is denied\n```\n"
    )
}
