//! Holds and their settlements, beside everything else that changes limits with costs of their own.

use std::sync::Arc;

use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, CostedLimits, HoldBounds, LimitCost, SettledCosts,
};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::{FailurePolicy, Field};
use weir_units::Micros;

use super::super::story::{Act, CostsAct, CostsRules, Step, Story};
use super::Dice;
use crate::support::rules::strategy;

const SECOND: u64 = 1_000_000;
const CONSUMERS: [&str; 2] = ["ann", "bob"];
const IDS: [&str; 5] = ["one", "two", "three", "four", "five"];

pub(super) fn stories() -> Vec<Story> {
    let span = Micros(10 * SECOND);
    let bucket = Algorithm::bucket(90, Rate { count: 5, period: Micros(SECOND) }).unwrap();
    let window = |limit, anchored| Algorithm::fixed_window(limit, span, anchored, false).unwrap();
    let log = Algorithm::sliding_log(80, span).unwrap();
    let slots = Algorithm::bucketed_window(70, span, 5, true).unwrap();
    let sliding = Algorithm::sliding_window(60, span).unwrap();
    let refill = Algorithm::interval_refill(90, 20, span, true).unwrap();
    vec![
        story("windows and a bucket", 3, [window(12, false), bucket, window(60, true)]),
        story("a log and slots", 4, [bucket, log, slots]),
        story("a sliding window and a refill", 5, [window(12, true), sliding, refill]),
    ]
}

/// The first limit has the fixed cost 1. Of the others, which share a cost, the last one is charged at once in one story.
fn story(name: &str, seed: u64, algorithms: [Algorithm; 3]) -> Story {
    let limits = ["calls", "first", "second"].into_iter().zip(algorithms);
    let limits: Vec<_> = limits.map(|(name, algorithm)| (name, &[Field::Consumer][..], algorithm)).collect();
    let costs = algorithms.iter().enumerate().map(|(index, algorithm)| BudgetLimit {
        algorithm: *algorithm,
        cost: if index == 0 { LimitCost::Fixed(1) } else { LimitCost::Named(0) },
        at_once: index == 2 && seed == 5,
        near_percent: Some(80),
    });
    let hold = Some(HoldBounds { max: Micros(16 * SECOND), known_for: Micros(60 * SECOND) });
    let costed = Arc::new(CostedLimits { limits: costs.collect(), names: vec!["tokens".into()], hold });
    let rules = CostsRules { strategy: Arc::new(strategy("gateway", &limits, FailurePolicy::Error)), costed };
    let mut dice = Dice(seed);
    let steps = (0..60).map(|_| {
        let after = dice.one_of(&[0, 1, SECOND / 3, SECOND, 4 * SECOND]);
        let (id, op) = act(&mut dice);
        let acts = vec![Act::Costs { rules: rules.clone(), consumer: dice.one_of(&CONSUMERS), id, op }];
        Step { after, acts }
    });
    Story { name: format!("budgets: {name}"), steps: steps.collect(), states_after: 30, law: None }
}

fn act(dice: &mut Dice) -> (&'static str, CostsAct) {
    let (cost, id) = (1 + dice.roll(30), dice.one_of(&IDS));
    let used = SettledCosts { costs: [Some(cost)].into_iter().collect(), cost: None };
    let ask = |hold_for, has_id, at_least| {
        let costs = [AskedCost { cost, at_least }].into_iter().collect();
        CostsAct::Ask(Ask { costs, cost: 1, peek: false, has_id, hold_for })
    };
    match dice.roll(12) {
        0..=4 => (id, ask(Some(Micros((1 + dice.roll(16)) * SECOND)), true, None)),
        5..=7 => (id, CostsAct::Settle(used)),
        8 => (id, ask(None, true, None)),
        9 => ("", ask(None, false, Some(1))),
        10 => (if dice.roll(2) == 0 { id } else { "" }, CostsAct::Debit(used)),
        _ if dice.roll(3) == 0 => ("", CostsAct::Reset),
        _ => (id, CostsAct::Refund(cost)),
    }
}
