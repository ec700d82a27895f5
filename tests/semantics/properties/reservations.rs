//! Promises of the starts of reserved calls, together with plain ones and cancellations.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_core::algorithm::{Algorithm, Bucket, Engine, Log, Op};
use weir_units::Micros;

use super::machine::Machine;
use super::random::{Step, bucket, config, held_log, step};

/// A step, and of which call it is: the one that is reserved or cancelled.
type Story = Vec<(Step, usize)>;

fn story() -> impl Strategy<Value = Story> {
    let op = prop_oneof![
        3 => Just(Op::Charge),
        4 => prop_oneof![0..=20_u64, 0..=5_000_u64, Just(1 << 40)].prop_map(|max| Op::Reserve { max_wait: Micros(max) }),
        2 => Just(Op::Cancel),
        1 => Just(Op::AtMost),
        1 => Just(Op::Peek),
    ];
    prop::collection::vec((step(op), 0..12_usize), 1..40)
}

/// The calls that go ahead: when, and what they cost. A reservation that is cancelled does not.
fn starts(limit: Algorithm, story: &Story) -> Vec<(u64, u64)> {
    let mut machine = Machine::new(vec![limit]);
    let (mut plain, mut reserved) = (Vec::new(), BTreeMap::new());
    for (number, (step, id)) in story.iter().enumerate() {
        let (op, cost) = machine.advance(step);
        let (now, name) = (machine.now.0, format!("call {id}"));
        match op {
            Op::Reserve { .. } => {
                // Another cost under the same id is refused, and charges nothing.
                let Ok(answer) = machine.decide_once(op, cost, &name) else { continue };
                if answer.verdict.applied {
                    reserved.insert((number, name), (now + answer.verdict.wait.0, cost));
                }
            }
            Op::Cancel => {
                let cancelled = machine.decide_once(op, 0, &name).unwrap().verdict.applied;
                // Of several that had this id, the last one.
                let last = reserved.iter().rev().find(|((_, of), (start, _))| *of == name && *start > now);
                if let Some(key) = last.map(|(key, _)| key.clone()).filter(|_| cancelled) {
                    reserved.remove(&key);
                }
            }
            _ => {
                let verdict = machine.decide(op, cost).verdict;
                if verdict.allowed && op != Op::Peek {
                    plain.push((now, verdict.granted));
                }
            }
        }
    }
    let mut all: Vec<_> =
        plain.into_iter().chain(reserved.into_values()).filter(|(_, cost)| *cost > 0).collect();
    all.sort_unstable();
    all
}

proptest! {
    #![proptest_config(config())]

    /// In any time t at most the burst and what drains in t and a microsecond, which a start is rounded up by.
    #[test]
    fn a_bucket_keeps_its_rate(limit in bucket(), story in story()) {
        let Engine::Bucket(Bucket { drain, per_token, .. }) = *limit.engine() else { unreachable!() };
        let starts = starts(limit, &story);
        for (index, (first, _)) in starts.iter().enumerate() {
            let mut sum = 0;
            for (last, cost) in &starts[index..] {
                sum += u128::from(*cost) * u128::from(per_token);
                let most = u128::from(limit.capacity()) + u128::from(last - first + 1) * u128::from(drain);
                prop_assert!(sum <= most, "{sum} ticks from {first} to {last}, at most {most}");
            }
        }
    }

    /// Never more than the limit in any half-open window.
    #[test]
    fn a_held_log_keeps_its_limit_exactly(limit in held_log(), story in story()) {
        let Engine::Log(Log { span, .. }) = *limit.engine() else { unreachable!() };
        let starts = starts(limit, &story);
        for (last, _) in &starts {
            let counts = |at: u64| at <= *last && at + span > *last;
            let sum: u64 = starts.iter().filter(|(at, _)| counts(*at)).map(|(_, cost)| cost).sum();
            prop_assert!(sum <= limit.limit(), "{sum} in the window up to {last}");
        }
    }

    /// Cycles: the limit in each period with cost 1, and else less than twice the capacity.
    #[test]
    fn an_interval_keeps_its_cycles(number in 1..=6_u64, period in 1..=5_000_u64, story in story()) {
        let limit = Algorithm::interval_refill(number, number, Micros(period), true).unwrap();
        for ones in [true, false] {
            let mut story = story.clone();
            if ones {
                story.iter_mut().for_each(|(step, _)| step.cost = super::random::Cost::Exactly(1));
            }
            let mut cycles: BTreeMap<u64, u64> = BTreeMap::new();
            for (at, cost) in starts(limit, &story) {
                *cycles.entry(at / period).or_default() += cost;
            }
            for (cycle, sum) in cycles {
                let most = if ones { limit.limit() } else { 2 * limit.limit() - 1 };
                prop_assert!(sum <= most, "{sum} in cycle {cycle}, at most {most}");
            }
        }
    }

    /// The same id is answered alike, and charges nothing.
    #[test]
    fn asking_again_changes_nothing(limit in prop_oneof![bucket().boxed(), held_log().boxed()], story in story()) {
        let mut machine = Machine::new(vec![limit]);
        for (step, id) in &story {
            let (op, cost) = machine.advance(step);
            if !matches!(op, Op::Reserve { .. }) {
                machine.decide(if op == Op::Cancel { Op::Charge } else { op }, cost);
                continue;
            }
            let name = format!("call {id}");
            let Ok(first) = machine.decide_once(op, cost, &name) else { continue };
            let (states, records) = (machine.states.clone(), machine.records.clone());
            let again = machine.decide_once(op, cost, &name).unwrap();
            prop_assert_eq!(first.verdict.allowed, again.verdict.allowed);
            if first.verdict.allowed {
                prop_assert!(!again.verdict.applied && again.verdict.wait == first.verdict.wait);
                prop_assert_eq!(&machine.states, &states);
                prop_assert_eq!(&machine.records, &records);
                // Above the largest number, all costs are one.
                let other = if cost > 0 { 0 } else { 1 };
                prop_assert_eq!(machine.decide_once(op, other, &name).err(), Some(cost.min(1 << 52)));
            }
        }
    }
}
