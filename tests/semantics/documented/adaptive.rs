//! The pictures of adaptive limits in docs/algorithms.md: what each controller makes of the same work.

use std::fmt::Write as _;

use weir_config::{Config, ConfigOverrides};
use weir_leases::model::{LeaseCall, LeaseOp, LeaseSet};
use weir_units::Micros;

use super::TEXT;

const LIMITS: [&str; 3] = [
    "adaptive: aimd, initial: 10, min: 2, max: 30, timeout: 250ms",
    "adaptive: vegas, initial: 10, min: 2, max: 30",
    "adaptive: gradient2, initial: 10, min: 2, max: 30",
];

/// The time of each piece of work, in tenths of a second. All permits are in use at its end. `D` was dropped.
const WORK: &str = "111111113333331111D1111111";

#[test]
fn adaptive_limits_are_drawn_by_the_program() {
    let mut wrong = String::new();
    for limit in LIMITS {
        let drawn = drawn(limit);
        if !TEXT.contains(&drawn) {
            let _ = writeln!(wrong, "{drawn}");
        }
    }
    assert!(wrong.is_empty(), "docs/algorithms.md is to have these pictures:\n{wrong}");
}

fn drawn(limit: &str) -> String {
    let text = format!("strategies: {{ work: {{ concurrency: {{ per: [resource], {limit} }} }} }}");
    let config = Config::parse(&text, "docs/algorithms.md", &ConfigOverrides::default()).unwrap();
    let rule = config.rules.strategies()[0].permits().unwrap();
    let mut leases = LeaseSet::default();
    let mut now = Micros::from_secs(1_704_067_200);
    let (mut took, mut limits, mut in_flight) = (String::new(), String::new(), 10);
    for work in WORK.chars() {
        let dropped = work == 'D';
        let rtt = Micros::from_millis(100 * u64::from(work.to_digit(10).unwrap_or(1)));
        now.0 += rtt.0;
        let op = LeaseOp::Sample { rtt, in_flight, dropped };
        let call = LeaseCall { now, id: "", op, partition: None, jitter: 1.0 };
        in_flight = leases.call(rule, &call).limit;
        let _ = write!(took, "{work:>3}");
        let _ = write!(limits, "{in_flight:>3}");
    }
    format!("```text\n{{ {limit} }}\n\ntook  |{took}|  x 100ms; D is dropped\nlimit |{limits}|\n```\n")
}
