//! Decisions that are made together are those that would be made one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use proptest::prelude::*;
use weir_config::WhenFull;
use weir_core::algorithm::{Algorithm, LimitVerdict, Op, Rate, Verdict};
use weir_core::key::Subject;
use weir_store::{Decision, StoreError, TOGETHER};
use weir_testing::stores::decide_ready;
use weir_units::Micros;

use super::{Fixture, HOUR, MIB, SECOND, decide, hourly_log, per_consumer, slow_bucket};
use crate::properties::memory::rules;
use crate::properties::random::config;

type Rules = Arc<weir_core::strategy::Strategy>;

/// A question of a message: under which rules, whose, for how much, and whether it only looks.
type Asked = (bool, u8, u64, bool);

proptest! {
    #![proptest_config(config())]

    /// Whatever the limits and however often a message names the same key.
    #[test]
    fn together_is_one_after_the_other(
        pair in (rules("one"), rules("other")),
        messages in prop::collection::vec(
            (prop::collection::vec((any::<bool>(), 0..6_u8, 0..4_u64, any::<bool>()), 1..40), 0..2_000_000_u64),
            1..6,
        ),
    ) {
        let (alone, together) = (fixture(), fixture());
        for (asked, pause) in &messages {
            let expected: Vec<_> = asked.iter().map(|asked| one(&alone, &pair, asked)).collect();
            let names: Vec<String> = asked.iter().map(|asked| format!("consumer {}", asked.1)).collect();
            let decisions: Vec<_> = asked.iter().zip(&names).map(|(asked, name)| decision(&pair, asked, name)).collect();
            let (each, limits) = decide_ready(&together.store, &decisions);
            let observed: Vec<_> = decisions.iter().zip(each).scan(0, |from, (decision, decided)| {
                let limits = &limits[*from..*from + decision.strategy.limits().len()];
                *from += limits.len();
                Some((decided.unwrap(), limits.to_vec()))
            }).collect();
            prop_assert_eq!(observed, expected);
            alone.pass(Micros(*pause));
            together.pass(Micros(*pause));
        }
    }
}

/// Each thread's messages name the same keys in another order. A thread that held one lock while it waits for
/// another would soon deadlock.
#[test]
fn many_threads_get_exactly_the_limit() {
    const THREADS: usize = 8;
    const MESSAGES: usize = 200;
    const KEYS: usize = 40;
    const LIMIT: u64 = 100;
    let fixture = fixture();
    let rules = per_consumer("hammered", Algorithm::bucket(LIMIT, Rate { count: 1, period: HOUR }).unwrap());
    let names: Vec<String> = (0..KEYS).map(|key| format!("consumer {key}")).collect();
    let admitted: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (fixture, rules, names, admitted) = (&fixture, &rules, &names, &admitted);
            scope.spawn(move || {
                for message in 0..MESSAGES {
                    let key = |index| if thread % 2 == 0 { index } else { KEYS - 1 - index };
                    let keys: Vec<usize> = (0..KEYS).map(|index| key((index + message) % KEYS)).collect();
                    let of = |&key: &usize| {
                        let subject = Subject { consumer: &names[key], ..Subject::default() };
                        Decision::new(rules, subject, Op::Charge, &[1])
                    };
                    let decisions: Vec<Decision<'_>> = keys.iter().map(of).collect();
                    let (each, _) = decide_ready(&fixture.store, &decisions);
                    for (key, decided) in keys.into_iter().zip(each) {
                        admitted[key].fetch_add(u64::from(decided.unwrap().allowed), Relaxed);
                    }
                }
            });
        }
    });
    for admitted in admitted {
        assert_eq!(admitted.into_inner(), LIMIT);
    }
}

/// One that finds no room fails alone, and has no part in what the limits say.
#[test]
fn one_that_fails_fails_alone() {
    let fixture = Fixture::new(MIB, WhenFull::Refuse);
    let (log, bucket) = (hourly_log(10_000), slow_bucket());
    assert!(fixture.charge(&bucket, "known", 1).unwrap());
    // Above the budget no log fits, in any shard. Below it one might, if its shard has a free place.
    let is_over = |call: u64| {
        let _ = fixture.charge(&log, &format!("consumer {call}"), 10_000);
        fixture.store.stats().bytes > MIB
    };
    assert!((0..100_000).any(is_over));
    let of = |strategy, consumer| {
        Decision::new(strategy, Subject { consumer, ..Subject::default() }, Op::Charge, &[1])
    };
    let decisions = [of(&bucket, "known"), of(&log, "new"), of(&bucket, "known")];
    let (each, limits) = decide_ready(&fixture.store, &decisions);
    let observed: Vec<_> = each.iter().map(|one| one.as_ref().map(|one| one.allowed)).collect();
    assert_eq!(observed, [Ok(true), Err(&StoreError::Full(MIB)), Ok(true)]);
    let remaining: Vec<u64> = limits.iter().map(|limit| limit.remaining).collect();
    assert_eq!(remaining, [8, 7]);
}

/// Keys expire and are dropped while a message is decided. The message has more keys than one fetch takes.
#[test]
fn what_is_fetched_may_be_gone() {
    let fixture = fixture();
    let rules = slow_bucket();
    let names: Vec<String> = (0..4_000).map(|key| format!("consumer {key}")).collect();
    for _ in 0..3 {
        for some in names.chunks(3 * TOGETHER + 1) {
            let of = |name| {
                Decision::new(&rules, Subject { consumer: name, ..Subject::default() }, Op::Charge, &[10])
            };
            let decisions: Vec<Decision<'_>> = some.iter().map(|name| of(name)).collect();
            let (each, _) = decide_ready(&fixture.store, &decisions);
            assert!(each.iter().all(|one| one.as_ref().is_ok_and(|one| one.allowed)));
        }
        fixture.pass(Micros(600 * SECOND.0));
    }
}

fn fixture() -> Fixture {
    Fixture::new(64 * MIB, WhenFull::Refuse)
}

fn decision<'a>((one, other): &'a (Rules, Rules), asked: &'a Asked, consumer: &'a str) -> Decision<'a> {
    let (is_one, _, cost, peek) = asked;
    let subject = Subject { resource: "api", consumer, ..Subject::default() };
    let op = if *peek { Op::Peek } else { Op::Charge };
    Decision::new(if *is_one { one } else { other }, subject, op, std::slice::from_ref(cost))
}

fn one(fixture: &Fixture, pair: &(Rules, Rules), asked: &Asked) -> (Verdict, Vec<LimitVerdict>) {
    let name = format!("consumer {}", asked.1);
    let decision = decision(pair, asked, &name);
    let out = decide(&fixture.store, &decision, decision.op, asked.2).unwrap();
    let (verdict, limits) = out.get(0).unwrap();
    (*verdict, limits.to_vec())
}
