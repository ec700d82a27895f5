//! The worst time that a decision takes in Redis, by its limits and its operation: how full a script call may be.
//!
//! The numbers follow the table in docs/algorithms.md ("The worst cost of a call"), less what a call costs by itself. They
//! are upper bounds: a usual decision costs a part of them, and a node that is faster gets fuller calls
//! (`redis/outbox/pace.rs`).

use weir_core::algorithm::budget::CostedLimits;
use weir_core::algorithm::{Algorithm, Engine, Grid, Log, Op, Slots};

use crate::{BudgetDecision, BudgetOp, Decision};

/// The cost of a decision or of a script call, in nanoseconds of a script.
pub(crate) type ScriptCost = u64;

/// The cost that a script call is filled up to.
pub(crate) const CALL_COST: ScriptCost = 2_000_000;

/// The cost of a key of a queue, of a lease or of a node's count.
pub(crate) const KEY_COST: ScriptCost = 2_000;

/// A state of a fixed size, on the short path: 512 of them fill a call.
const FIXED: ScriptCost = 3_900;

/// A state of a fixed size that the full driver decides.
const FULL_DRIVER: ScriptCost = 15_000;

/// The parts of holds of a limit that end at as many different times as they may.
const PARTS: ScriptCost = 25_000;

/// The waits of a log whose parts are searched by halves for the earliest time, in whole costs of the log.
const WAITS: ScriptCost = 2;

pub(crate) fn of<'a>(limits: impl Iterator<Item = &'a Algorithm>, op: Op) -> ScriptCost {
    limits.map(|limit| of_limit(limit, op)).sum::<ScriptCost>().max(FIXED)
}

pub(crate) fn of_decision(decision: &Decision<'_>) -> ScriptCost {
    let limits = of(decision.limits().map(|limit| &limit.algorithm), decision.op);
    limits + if decision.once().is_some() { FULL_DRIVER } else { 0 }
}

/// Returns the worst cost of an operation on limits with costs of their own. The short path decides those that are `plain`.
pub(crate) fn of_budget(decision: &BudgetDecision<'_>, is_plain: bool) -> ScriptCost {
    if is_plain {
        return of(decision.costed.limits.iter().map(|limit| &limit.algorithm), Op::Charge);
    }
    let op = match decision.op {
        BudgetOp::Refund(..) => Op::Refund,
        _ => Op::Charge,
    };
    of_costed(decision.costed, op)
}

fn of_costed(costed: &CostedLimits, op: Op) -> ScriptCost {
    let limits = costed.limits.iter().map(|limit| {
        let engine = of_limit(&limit.algorithm, op);
        let holds = costed.hold.is_some() && limit.holds();
        let waits = if matches!(limit.algorithm.engine(), Engine::Log(_)) { WAITS * engine } else { 0 };
        FULL_DRIVER + engine + if holds { PARTS + waits } else { 0 }
    });
    limits.sum::<ScriptCost>() + FULL_DRIVER
}

fn of_limit(limit: &Algorithm, op: Op) -> ScriptCost {
    match limit.engine() {
        Engine::Slots(slots) => of_slots(slots, op),
        Engine::Log(log) => of_log(log, limit.limit()),
        Engine::WarmUp(_) => FULL_DRIVER,
        Engine::Window(window) if matches!(window.grid, Grid::Spread | Grid::Month { .. }) => FULL_DRIVER,
        Engine::Bucket(_) if limit.undelayed().is_some() || limit.charges_after() => FULL_DRIVER,
        Engine::Bucket(_) | Engine::Window(_) | Engine::Interval(_) | Engine::Sliding(_) => FIXED,
    }
}

/// A charge writes all parts at worst, a refund and a count read each by itself.
fn of_slots(slots: &Slots, op: Op) -> ScriptCost {
    5_000
        + match op {
            Op::Count { parts } => 1_000 * parts.min(slots.count()),
            Op::Refund => 500 * slots.count(),
            _ => 110 * slots.count(),
        }
}

/// A search by halves reads a command's worth of entries at each step; reservations that lie ahead are all read.
fn of_log(log: &Log, limit: u64) -> ScriptCost {
    let steps = u64::from(limit.max(1).ilog2()) + 1;
    10_000 + 6_500 * steps + 450 * log.max_held
}

#[cfg(test)]
mod tests {
    use weir_core::algorithm::budget::{BudgetLimit, HoldBounds, LimitCost};
    use weir_core::algorithm::{MAX_ENTRIES, Rate};
    use weir_units::Micros;

    use super::*;

    const HOUR: Micros = Micros::from_secs(3600);

    fn us(limits: &[Algorithm], op: Op) -> u64 {
        of(limits.iter(), op) / 1_000
    }

    /// Eight limits, each with as many ends as there may be.
    #[test]
    fn no_row_of_costs_by_limit_costs_more() {
        let us = |algorithm| {
            let limit =
                BudgetLimit { algorithm, cost: LimitCost::Named(0), at_once: false, near_percent: None };
            let hold = Some(HoldBounds { max: HOUR, known_for: HOUR });
            let costed = CostedLimits { limits: vec![limit; 8], names: vec!["n".into()], hold };
            of_costed(&costed, Op::Charge) / 1_000
        };
        let window = Algorithm::fixed_window(1000, HOUR, false, false).unwrap();
        assert!(us(window) >= 310 && us(Algorithm::sliding_log(MAX_ENTRIES, HOUR).unwrap()) >= 2_500);
    }

    /// The least of the rows of the table, which has the cost of the call besides.
    #[test]
    fn no_row_of_the_table_costs_more() {
        let bucket = Algorithm::bucket(1000, Rate { count: 1000, period: HOUR }).unwrap();
        let slots = |buckets| Algorithm::bucketed_window(3600, Micros(buckets * 1_000_000), buckets, true);
        let (few, many) = (slots(360).unwrap(), slots(3600).unwrap());
        let log = Algorithm::sliding_log(MAX_ENTRIES, HOUR).unwrap();
        let held = |most| Algorithm::held_log(MAX_ENTRIES, HOUR, most).unwrap();
        assert_eq!(CALL_COST / of([bucket].iter(), Op::Charge), 512);
        assert!(us(&[few], Op::Charge) >= 42 && us(&[many], Op::Charge) >= 353);
        assert!(us(&[few], Op::Count { parts: 180 }) >= 169 && us(&[few], Op::Refund) >= 162);
        assert!(us(&[many], Op::Count { parts: 1800 }) >= 879);
        assert!(us(&[log], Op::Charge) >= 100 && us(&[log; 8], Op::Charge) >= 555);
        assert!(us(&[held(100)], Op::Charge) >= 122 && us(&[held(1000)], Op::Charge) >= 450);
        assert!(us(&[log; 8], Op::Charge) < CALL_COST / 1_000, "one decision is less than a call");
    }
}
