//! Compares both sides of the scripts: the names of codes, and the names of doubles in their order.

use weir_core::algorithm::EngineKind;
use weir_testing::script_names::{definitions, lists};

use super::{bucket, budget_outcome, budget_status, cause, op, window};
use crate::redis::decisions::{BUDGET_DOUBLES, DOUBLES as DECISION_DOUBLES};

macro_rules! lua {
    ($($path:literal)+) => {
        concat!($(include_str!(concat!("../../../../../lua/", $path, ".lua"))),+)
    };
}

/// A script, its codes, and those of them that it never names because they are the remaining case.
type Codes = (&'static str, &'static [(&'static str, u64)], &'static [&'static str]);

const CODES: [Codes; 6] = [
    (lua!("start" "limit" "budget/ask" "budget/settle"), op::ALL, &[]),
    (lua!("limit"), cause::ALL, &[]),
    (lua!("limit"), bucket::ALL, &[]),
    (lua!("budget/ask" "budget/settle" "budget/adjust" "budget"), budget_status::ALL, &["DENIED", "ALLOWED"]),
    (lua!("budget/settle"), budget_outcome::ALL, &["NONE"]),
    (lua!("window"), window::ALL, &["ANCHORED"]),
];

#[test]
fn both_sides_have_the_same_numbers() {
    for (text, codes, unnamed) in CODES {
        let defined = definitions(text);
        for (name, number) in codes {
            let there = defined.get(name).map(Vec::as_slice).unwrap_or_default();
            assert_eq!(there.is_empty(), unnamed.contains(name), "{name}");
            assert!(there.iter().all(|there| *there == *number as f64), "{name}: {there:?}, {number}");
        }
    }
}

#[test]
fn both_sides_have_the_same_engines() {
    let defined = definitions(lua!("numbers"));
    for engine in EngineKind::ALL {
        let name = engine.name().to_uppercase();
        assert_eq!(defined.get(&*name), Some(&vec![engine.number() as f64]), "{name}");
    }
}

#[test]
fn both_sides_have_the_same_order() {
    let scripts = [(lua!("start" "judge" "decide"), DECISION_DOUBLES), (lua!("budget"), BUDGET_DOUBLES)];
    for (text, structs) in scripts {
        let read = lists(text);
        for names in structs {
            let names = names.join(" ");
            assert!(read.iter().any(|list| list.contains(&names)), "nothing reads {names}, but {read:#?}");
        }
    }
}

#[test]
fn the_checks_can_fail() {
    let text = "local A, B = 1, 2\n  local NEVER = -1\nlocal x = 3\nlocal B = 4 -- b\n";
    let found = definitions(text).into_iter().collect::<Vec<_>>();
    assert_eq!(found, [("A", vec![1.0]), ("B", vec![2.0, 4.0]), ("NEVER", vec![-1.0])]);
    let text = "  l.op, l.least,\n    l.p1 =\n    struct.unpack('<ddd', x)\nlocal now, at = unpack_struct('<d', y)\n";
    assert_eq!(lists(text), ["op least p1", "now at"]);
}
