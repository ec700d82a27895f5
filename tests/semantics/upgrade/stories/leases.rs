//! Leases of every kind of limit, with partitions, samples one by one and together.

use std::sync::Arc;

use weir_core::strategy::{
    AimdRule, ConcurrencyNumbers, ControllerRule, Gradient2Rule, LimitSource, Partitions, ProbeRule,
    SamplingRule, Strategy,
};
use weir_leases::model::{LeaseOp, WorkOutcome};
use weir_units::Micros;

use super::super::story::{Act, Law, Step, Story};
use super::Dice;
use crate::support::leases::{adaptive, numbers, strategy, vegas};

const SECOND: u64 = 1_000_000;

pub(super) fn stories() -> Vec<Story> {
    let shares = vec![("live".into(), 700), ("batch".into(), 300)];
    let tiers = Partitions::new("tier", shares);
    let aimd = ControllerRule::Aimd(AimdRule { backoff: 0.7, timeout: Micros(5 * SECOND) });
    let gradient2 = ControllerRule::Gradient2(Gradient2Rule {
        smoothing: 0.2,
        queue: 2.0,
        long_window: 20.0,
        tolerance: 1.5,
    });
    let follows = |controller, sampling| {
        let rule = weir_core::strategy::AdaptiveRule { sampling, ..adaptive((4, 2, 9), controller) };
        ConcurrencyNumbers { source: LimitSource::Adaptive(rule), ..numbers(0) }
    };
    let together = Some(SamplingRule { window: Micros(8 * SECOND), samples: 2 });
    vec![
        story("fixed", 11, numbers(4), Some(Law::Held(4))),
        story("partitions", 12, ConcurrencyNumbers { partitions: Some(tiers.clone()), ..numbers(4) }, None),
        story("aimd", 13, follows(aimd, None), None),
        story("aimd, sampled together", 14, follows(aimd, together), None),
        story(
            "aimd, partitions",
            15,
            ConcurrencyNumbers { partitions: Some(tiers), ..follows(aimd, None) },
            None,
        ),
        story("vegas", 16, follows(vegas(0.5, ProbeRule::PerPermit(1.0)), None), None),
        story("gradient2", 17, follows(gradient2, None), None),
    ]
}

fn story(name: &str, seed: u64, numbers: ConcurrencyNumbers, law: Option<Law>) -> Story {
    let strategy = strategy("exports", ConcurrencyNumbers { max_ttl: Micros(60 * SECOND), ..numbers });
    let mut dice = Dice(seed);
    let steps = (0..40).map(|number| {
        let after = dice.one_of(&[0, 0, 1, SECOND / 3, SECOND, 4 * SECOND, 25 * SECOND]);
        // All leases end in the middle of it.
        let after = if number == 30 { 70 * SECOND } else { after };
        let acts = (0..1 + dice.roll(2)).map(|_| act(&mut dice, &strategy)).collect();
        Step { after, acts }
    });
    Story { name: format!("leases: {name}"), steps: steps.collect(), states_after: 20, law }
}

fn act(dice: &mut Dice, strategy: &Arc<Strategy>) -> Act {
    let outcome = dice.one_of(&[
        WorkOutcome::Success,
        WorkOutcome::Success,
        WorkOutcome::Ignored,
        WorkOutcome::Dropped,
    ]);
    let rtt = dice.one_of(&[None, Some(Micros(20_000)), Some(Micros(90_000)), Some(Micros(7 * SECOND))]);
    let ttl = Micros(dice.one_of(&[10 * SECOND, 30 * SECOND, 90 * SECOND]));
    let acquire = LeaseOp::Acquire { weight: 1 + dice.roll(2), ttl };
    let release = LeaseOp::Release { outcome, rtt };
    let op = dice.one_of(&[acquire, acquire, acquire, LeaseOp::Renew { ttl }, release, release]);
    // Mostly of one consumer, whose leases are in one key.
    let consumer = dice.one_of(&["bob", "bob", "bob", "eve"]);
    let (tier, id) = (dice.one_of(&["live", "batch", "else"]), dice.one_of(&["a", "b", "c", "d", "e", "f"]));
    Act::Lease { strategy: Arc::clone(strategy), consumer, tier, id: id.to_owned(), op }
}
