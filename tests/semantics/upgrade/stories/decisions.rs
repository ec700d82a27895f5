//! Several callers of several limits, by the short path and by the full driver, together in one call.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::strategy::{FailurePolicy, Field, Strategy};
use weir_units::Micros;

use super::super::story::{Act, Law, Step, Story};
use super::Dice;
use crate::support::rules::strategy;

const SECOND: u64 = 1_000_000;
const CONSUMERS: [&str; 3] = ["ann", "bob", "eve"];

pub(super) fn stories() -> Vec<Story> {
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let span = Micros(10 * SECOND);
    let log = Algorithm::sliding_log(7, span).unwrap();
    let bucket = Algorithm::bucket(9, Rate { count: 1, period: Micros(SECOND) }).unwrap();
    let slots = Algorithm::bucketed_window(8, span, 5, true).unwrap();
    let spread = Algorithm::spread_window(40, span, false).unwrap();
    let all =
        |limits: &[(&str, &[Field], Algorithm)]| Arc::new(strategy("crowd", limits, FailurePolicy::Error));
    let mut stories = vec![
        story("a log and a bucket", 1, &all(&[("log", both, log), ("bucket", both, bucket)]), 7),
        story("slots and a spread window", 2, &all(&[("slots", both, slots), ("spread", both, spread)]), 8),
    ];
    // An id of one call is that of no other: each is remembered with its cost.
    for (story, max_wait) in stories.iter_mut().zip([Micros(3 * SECOND), Micros::ZERO]) {
        story.steps.truncate(40);
        let Act::Decide { strategy, .. } = &story.steps[0].acts[0] else { continue };
        let strategy = Arc::clone(strategy);
        let ask =
            |op, cost, id| Act::Decide { strategy: Arc::clone(&strategy), consumer: "ann", id, op, cost };
        let refund = || ask(Op::Refund, 1, "back");
        let op = if max_wait == Micros::ZERO { Op::AtMost } else { Op::Charge };
        for acts in
            [vec![ask(op, 2, "once")], vec![ask(op, 2, "once")], vec![refund(), refund()], vec![refund()]]
        {
            story.steps.push(Step { after: SECOND, acts });
        }
    }
    stories
}

fn story(name: &str, seed: u64, strategy: &Arc<Strategy>, most: u64) -> Story {
    let mut dice = Dice(seed);
    let steps = (0..40).map(|_| {
        let after = dice.one_of(&[0, 0, 1, SECOND / 3, SECOND, 4 * SECOND]);
        let count = 1 + dice.roll(3);
        let acts = (0..count).map(|_| {
            let (consumer, cost) = (dice.one_of(&CONSUMERS), 1 + dice.roll(3));
            let op = dice.one_of(&[Op::Charge, Op::Charge, Op::Charge, Op::Peek]);
            Act::Decide { strategy: Arc::clone(strategy), consumer, id: "", op, cost }
        });
        Step { after, acts: acts.collect() }
    });
    let (steps, law) = (steps.collect(), Some(Law::AtMost(most, 10 * SECOND)));
    Story { name: format!("decisions: {name}"), steps, states_after: 20, law }
}
