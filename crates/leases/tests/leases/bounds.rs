//! The bounds of leases under random holders that work, renew, crash and pause.

use std::collections::HashMap;

use proptest::prelude::*;
use weir_core::strategy::{ConcurrencyNumbers, ConcurrencyRule, LimitSource, MAX_LEASES, Partitions};
use weir_leases::model::{
    LeaseAnswer, LeaseCall, LeaseOp, LeaseOutcome, LeaseRefusal, LeaseSet, WorkOutcome,
};
use weir_units::Micros;

use super::world::{START, numbers};
use crate::support::random;

const TTL: u64 = 1_000;

/// The next action of a holder, and the pause after the step before.
#[derive(Debug, Clone)]
struct Step {
    pause: u64,
    holder: usize,
    tier: usize,
    action: Action,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Acquire(u64),
    Renew,
    Release,
    /// The holder forgets its lease. It never releases or renews it.
    Crash,
}

const TIERS: [&str; 3] = ["gold", "silver", "none"];
const HOLDERS: usize = 8;

/// The belief of the holders, by the answers that they got.
#[derive(Default)]
struct Holders {
    /// Weight and end of the leases that were not released.
    held: HashMap<String, (u64, u64)>,
    /// The lease of each holder that has not crashed, and how many it has had.
    current: [(Option<String>, usize); HOLDERS],
}

impl Holders {
    fn in_flight(&self, now: u64) -> u64 {
        self.held.values().filter(|(_, ends)| *ends > now).map(|(weight, _)| weight).sum()
    }
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        5 => (1..4_u64).prop_map(Action::Acquire),
        2 => Just(Action::Renew),
        3 => Just(Action::Release),
        1 => Just(Action::Crash),
    ];
    // A pause of the ttl and more is one in which leases end.
    let pause = prop_oneof![6 => 0..TTL / 4, 2 => TTL - 1..TTL + 2, 1 => 0..5 * TTL];
    (pause, 0..HOLDERS, 0..TIERS.len(), action).prop_map(|(pause, holder, tier, action)| Step {
        pause,
        holder,
        tier,
        action,
    })
}

fn rule(limit: u64, shares: Option<(u64, u64)>) -> ConcurrencyRule {
    let partitions = shares.map(|(gold, silver)| {
        Partitions::new("tier", vec![("gold".into(), gold), ("silver".into(), silver)])
    });
    ConcurrencyRule::new(ConcurrencyNumbers { partitions, ..numbers(limit) }).unwrap()
}

proptest! {
    #![proptest_config(random::config())]

    /// The leases that have not ended hold at most the limit, also after crashes and pauses. With partitions they hold
    /// at most the limit and the sum of the guaranteed shares.
    #[test]
    fn what_is_held_is_bounded(
        limit in 0..8_u64,
        shares in prop::option::of((0..=1000_u64, 0..=1000_u64)),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let rule = rule(limit, shares);
        let partitions = rule.numbers().partitions.as_ref();
        let extra: u64 = partitions.map_or(0, |all| TIERS.iter().map(|tier| all.of(tier).guaranteed(limit)).sum());
        let (mut leases, mut holders, mut now) = (LeaseSet::default(), Holders::default(), START);
        for step in steps {
            now += step.pause;
            let partition = partitions.map(|all| all.of(TIERS[step.tier]));
            let mut ask = |id: &str, op| {
                leases.call(&rule, &LeaseCall { now: Micros(now), id, op, partition, jitter: 1.0 })
            };
            let answer = take(&mut holders, &step, now, &mut ask)?;
            let in_flight = holders.in_flight(now);
            prop_assert!(in_flight <= limit + extra, "{in_flight} of {limit} and {extra}");
            if let Some(answer) = answer {
                prop_assert_eq!(answer.in_flight, in_flight, "the sum is what its holders hold");
                let own = partition.map_or(0, |one| one.guaranteed(limit));
                prop_assert!(answer.remaining <= limit.max(own));
            }
        }
    }
}

/// One step of one holder.
fn take(
    holders: &mut Holders,
    step: &Step,
    now: u64,
    ask: &mut impl FnMut(&str, LeaseOp) -> LeaseAnswer,
) -> Result<Option<LeaseAnswer>, TestCaseError> {
    let (current, count) = &mut holders.current[step.holder];
    let answer = match (step.action, current.clone()) {
        (Action::Acquire(weight), None) => {
            *count += 1;
            let id = format!("{}-{count}", step.holder);
            let answer = ask(&id, LeaseOp::Acquire { weight, ttl: Micros(TTL) });
            if let LeaseOutcome::Held { expires_after, is_new } = answer.outcome {
                prop_assert!(is_new && expires_after == Micros(TTL));
                holders.held.insert(id.clone(), (weight, now + TTL));
                *current = Some(id);
            } else {
                // What remains says what passes: this did not.
                prop_assert!(answer.remaining < weight);
            }
            answer
        }
        (Action::Renew, Some(id)) => {
            let answer = ask(&id, LeaseOp::Renew { ttl: Micros(TTL) });
            let ended = holders.held[&id].1 <= now;
            // A holder that was paused learns of the loss.
            prop_assert_eq!(answer.outcome == LeaseOutcome::NotHeld, ended);
            if !ended {
                holders.held.entry(id).and_modify(|lease| lease.1 = now + TTL);
            }
            answer
        }
        (Action::Release, Some(id)) => {
            let answer = ask(&id, LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None });
            let ended = holders.held[&id].1 <= now;
            prop_assert_eq!(answer.outcome == LeaseOutcome::NotHeld, ended);
            holders.held.remove(&id);
            *current = None;
            answer
        }
        (Action::Crash, Some(_)) => {
            *current = None;
            return Ok(None);
        }
        _ => return Ok(None),
    };
    Ok(Some(answer))
}

/// After the wait that a refusal names, an acquisition succeeds if no holder renews. With few leases no shorter wait
/// is enough.
#[test]
fn the_bound_of_a_refusal_is_when_leases_end_by_themselves() {
    let rule = rule(5, None);
    let mut leases = LeaseSet::default();
    let mut ask = |now: u64, id: &str, weight, ttl: u64| {
        let op = LeaseOp::Acquire { weight, ttl: Micros(ttl) };
        leases.call(&rule, &LeaseCall { now: Micros(now), id, op, partition: None, jitter: 1.0 }).outcome
    };
    for (id, weight, ttl) in [("a", 2, 300), ("b", 2, 100), ("c", 1, 200)] {
        assert!(matches!(ask(START, id, weight, ttl), LeaseOutcome::Held { .. }));
    }
    for (weight, wait) in [(1, 100), (2, 100), (3, 200), (4, 300), (5, 300)] {
        let bound = Some(Micros(wait - 10));
        let refusal = LeaseRefusal::Limited;
        assert_eq!(ask(START + 10, "d", weight, 1), LeaseOutcome::Refused { refusal, bound }, "{weight}");
    }
    assert!(matches!(ask(START + 199, "d", 3, 1), LeaseOutcome::Refused { .. }));
    assert!(matches!(ask(START + 200, "d", 3, 1), LeaseOutcome::Held { .. }));
}

/// However many permits there are.
#[test]
fn a_key_has_a_bounded_number_of_leases() {
    let source = LimitSource::Fixed(1 << 40);
    let rule = ConcurrencyRule::new(ConcurrencyNumbers { source, ..numbers(0) }).unwrap();
    let mut leases = LeaseSet::default();
    let mut ask = |number: usize, ttl| {
        let (id, op) = (number.to_string(), LeaseOp::Acquire { weight: 1, ttl: Micros(ttl) });
        let call = LeaseCall { now: Micros(START), id: &id, op, partition: None, jitter: 1.0 };
        leases.call(&rule, &call).outcome
    };
    for number in 0..MAX_LEASES {
        assert!(matches!(ask(number, 100 + number as u64), LeaseOutcome::Held { is_new: true, .. }));
    }
    let (refusal, bound) = (LeaseRefusal::Full, Some(Micros(100)));
    assert_eq!(ask(MAX_LEASES, 1), LeaseOutcome::Refused { refusal, bound });
    assert!(matches!(ask(5, 1), LeaseOutcome::Held { is_new: false, .. }), "a known one is answered");
}

/// A clock that was set back does not keep a lease for longer than the longest one may last.
#[test]
fn a_lease_ends_after_its_longest_time_whatever_the_clock_does() {
    let rule = rule(1, None);
    let longest = rule.numbers().max_ttl.0;
    let mut leases = LeaseSet::default();
    let mut ask = |now: u64, id: &str| {
        let op = LeaseOp::Acquire { weight: 1, ttl: Micros(longest) };
        leases.call(&rule, &LeaseCall { now: Micros(now), id, op, partition: None, jitter: 1.0 }).outcome
    };
    assert!(matches!(ask(START, "a"), LeaseOutcome::Held { .. }));
    let back = START - 10 * longest;
    let (refusal, bound) = (LeaseRefusal::Limited, Some(Micros(longest)));
    assert_eq!(ask(back, "b"), LeaseOutcome::Refused { refusal, bound });
    let bound = Some(Micros(1));
    assert_eq!(ask(back + longest - 1, "b"), LeaseOutcome::Refused { refusal, bound });
    assert!(matches!(ask(back + longest, "b"), LeaseOutcome::Held { .. }));
}
