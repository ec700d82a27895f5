//! The budget holds for any number of keys, and denied callers stay denied meanwhile.

use weir_config::WhenFull;
use weir_core::algorithm::Op;
use weir_store::StoreError;
use weir_units::Micros;

use super::{Fixture, HOUR, MIB, decide_for, hourly_log, slow_bucket};

/// A log may grow past the budget by what one of its steps takes; then it must wait for room.
const OVERSHOOT: usize = 4096;

#[test]
fn keys_that_come_and_go_stay_within_the_budget() {
    let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Evict), slow_bucket());
    for key in 0..200_000 {
        assert!(fixture.charge(&strategy, &format!("consumer {key}"), 1).unwrap());
        if key % 1000 == 0 {
            assert!(fixture.store.stats().bytes <= MIB);
        }
    }
    let stats = fixture.store.stats();
    assert!(stats.bytes <= MIB && stats.keys > 15_000, "{stats:?}");
    assert_eq!(stats.evictions as usize + stats.keys, 200_000);
    assert_eq!(stats.refusals, 0);
}

/// Evicting an exhausted key would give its holder a full limit. If nearly all keys are exhausted, the store still
/// finds the others among them.
#[test]
fn exhausted_keys_are_never_evicted() {
    let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Evict), slow_bucket());
    for key in 0..13_000 {
        assert!(fixture.charge(&strategy, &format!("exhausted {key}"), 10).unwrap());
    }
    for key in 0..50_000 {
        assert!(fixture.charge(&strategy, &format!("passer-by {key}"), 1).unwrap());
    }
    for key in 0..13_000 {
        assert!(!fixture.charge(&strategy, &format!("exhausted {key}"), 1).unwrap(), "{key} was forgotten");
    }
    assert!(fixture.store.stats().evictions > 0);
}

/// If all keys are exhausted, a new key gets an error that says so. Decisions of the old keys go on.
#[test]
fn a_store_of_exhausted_keys_is_full() {
    let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Evict), slow_bucket());
    let outcomes: Vec<_> =
        (0..60_000).map(|key| fixture.charge(&strategy, &format!("exhausted {key}"), 10)).collect();
    let refused = outcomes.iter().filter(|outcome| **outcome == Err(StoreError::Full(MIB))).count();
    let stats = fixture.store.stats();
    assert_eq!((stats.keys + refused, stats.evictions, stats.refusals as usize), (60_000, 0, refused));
    assert!(refused > 0 && stats.bytes <= MIB, "{stats:?}");
    for (key, outcome) in outcomes.iter().enumerate() {
        let consumer = format!("exhausted {key}");
        let expected = if outcome.is_ok() { Ok(false) } else { Err(StoreError::Full(MIB)) };
        assert_eq!(fixture.charge(&strategy, &consumer, 1), expected);
        assert_eq!(fixture.peek(&strategy, &consumer, 1), outcome.is_err(), "a look needs no room");
    }
}

#[test]
fn refusing_keeps_every_key_that_counts() {
    let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Refuse), slow_bucket());
    let admitted = |key: usize| fixture.charge(&strategy, &format!("consumer {key}"), 1);
    let kept: Vec<usize> = (0..60_000).filter(|&key| admitted(key).is_ok()).collect();
    let stats = fixture.store.stats();
    assert_eq!((stats.keys, stats.evictions), (kept.len(), 0));
    assert_eq!(stats.refusals as usize, 60_000 - kept.len());
    assert!(kept.len() > 15_000 && stats.bytes <= MIB, "{stats:?}");
    for key in kept {
        assert!(!fixture.peek(&strategy, &format!("consumer {key}"), 10), "{key} was forgotten");
    }
}

/// One log after the other: each takes more than its cell.
#[test]
fn logs_that_come_and_go_stay_within_the_budget() {
    let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Evict), hourly_log(100));
    for key in 0..50_000 {
        assert!(fixture.charge(&strategy, &format!("consumer {key}"), 1).is_ok(), "{key}");
        if key % 16 == 0 {
            let stats = fixture.store.stats();
            assert!(stats.bytes <= MIB + OVERSHOOT, "{stats:?}");
        }
    }
    assert!(fixture.store.stats().keys > 3000);
}

/// Cells that buckets have left behind are paid for; the logs that move in are not.
#[test]
fn logs_in_the_cells_of_others_stay_within_the_budget() {
    for when_full in [WhenFull::Evict, WhenFull::Refuse] {
        let (fixture, buckets, logs) = (Fixture::new(MIB, when_full), slow_bucket(), hourly_log(100));
        for key in 0..30_000 {
            let _ = fixture.charge(&buckets, &format!("bucket {key}"), 1);
        }
        fixture.pass(HOUR);
        fixture.store.sweep();
        assert_eq!(fixture.store.stats().keys, 0);
        for key in 0..30_000 {
            let _ = fixture.charge(&logs, &format!("log {key}"), 1);
            if key % 16 == 0 {
                let stats = fixture.store.stats();
                assert!(stats.bytes <= MIB + OVERSHOOT, "{stats:?}");
            }
        }
    }
}

/// Logs that grow stop at the budget. No log is dropped for that, and denied callers stay denied. With an error instead
/// of a denial, the failure policy would answer, and may admit.
#[test]
fn a_growing_log_stops_at_the_budget() {
    let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Refuse), hourly_log(10_000));
    assert!(fixture.charge(&strategy, "exhausted", 10_000).unwrap());
    let mut refused = 0;
    for call in 0..50_000 {
        fixture.pass(Micros(1));
        match fixture.charge(&strategy, &format!("consumer {}", call % 100), 1) {
            Ok(admitted) => assert!(admitted),
            Err(error) => {
                assert_eq!(error, StoreError::Full(MIB));
                refused += 1;
            }
        }
        assert!(call % 16 != 0 || fixture.store.stats().bytes <= MIB + 16 * OVERSHOOT);
    }
    assert!(refused > 0);
    assert_eq!(fixture.store.stats().refusals, refused);
    assert!(!fixture.charge(&strategy, "exhausted", 1).unwrap());
    let whole = |key| fixture.peek(&strategy, &format!("consumer {key}"), 10_000);
    assert!(!(0..100).any(whole), "a log was forgotten");
    // What expires is known to the second.
    fixture.pass(Micros(HOUR.0 + 1_000_000));
    fixture.store.sweep();
    assert!(fixture.charge(&strategy, "consumer 7", 1).unwrap(), "expired logs are evicted");
}

/// If keys may be evicted, a log that grows is rarely refused while other logs can make room; and a bucket, whose
/// cell stays, is not dropped for it in vain.
#[test]
fn a_growing_log_evicts_other_logs_only() {
    let (fixture, logs, buckets) = (Fixture::new(MIB, WhenFull::Evict), hourly_log(10_000), slow_bucket());
    for key in 0..4000 {
        fixture.charge(&buckets, &format!("bucket {key}"), 1).unwrap();
    }
    for call in 0..60_000 {
        fixture.pass(Micros(1));
        let _ = fixture.charge(&logs, &format!("log {}", call % 1000), 1);
        assert!(call % 16 != 0 || fixture.store.stats().bytes <= MIB + OVERSHOOT);
    }
    let stats = fixture.store.stats();
    // Room is looked for in the log's own shard only, which now and then has no other log.
    assert!(stats.evictions > 0 && stats.refusals < 600, "{stats:?}");
    for key in 0..4000 {
        assert!(!fixture.peek(&buckets, &format!("bucket {key}"), 10), "{key} was forgotten");
    }
}

/// However small the budget, nothing panics and nothing is admitted that is not kept.
#[test]
fn tiny_budgets_refuse() {
    for budget in [0, 1, 100, 5000, 100_000] {
        let (fixture, buckets, logs) = (Fixture::new(budget, WhenFull::Evict), slow_bucket(), hourly_log(3));
        for key in 0..1000 {
            let consumer = format!("consumer {key}");
            for strategy in [&buckets, &logs] {
                match fixture.charge(strategy, &consumer, 3) {
                    Ok(admitted) => assert!(admitted && !fixture.peek(strategy, &consumer, 8)),
                    Err(error) => assert_eq!(error, StoreError::Full(budget)),
                }
                decide_for(&fixture.store, strategy, &consumer, Op::Peek, 1).unwrap();
                decide_for(&fixture.store, strategy, &consumer, Op::Reset, 0).unwrap();
            }
        }
    }
}
