//! Many threads at once: exactly the limit is admitted, and the budget holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use weir_config::WhenFull;
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::Strategy;

use super::{Fixture, HOUR, MIB, hourly_log, per_consumer, slow_bucket};

const THREADS: u64 = 8;
const CALLS: u64 = 10_000;
const LIMIT: u64 = 100;

#[test]
fn ten_thousand_callers_get_exactly_the_limit() {
    let algorithms = [
        Algorithm::bucket(LIMIT, Rate { count: LIMIT, period: HOUR }),
        Algorithm::fixed_window(LIMIT, HOUR, true, false),
        Algorithm::interval_refill(LIMIT, LIMIT, HOUR, false),
        Algorithm::sliding_log(LIMIT, HOUR),
        Algorithm::strict_log(LIMIT, HOUR, true, weir_units::Micros::ZERO),
        Algorithm::sliding_window(LIMIT, HOUR),
        Algorithm::bucketed_window(LIMIT, HOUR, 60, true),
    ];
    for algorithm in algorithms.map(Result::unwrap) {
        let (fixture, strategy) = (Fixture::new(MIB, WhenFull::Evict), per_consumer("hammered", algorithm));
        let admitted = AtomicU64::new(0);
        in_parallel(|_| {
            for _ in 0..CALLS / THREADS {
                admitted.fetch_add(u64::from(fixture.charge(&strategy, "everybody", 1).unwrap()), Relaxed);
            }
        });
        assert_eq!(admitted.into_inner(), LIMIT, "{algorithm:?}");
    }
}

/// Shards share one budget, and each takes from it under its own lock.
#[test]
fn the_budget_holds_under_many_threads() {
    let fixture = Fixture::new(MIB, WhenFull::Evict);
    let strategies: [Arc<Strategy>; 2] = [slow_bucket(), hourly_log(50)];
    in_parallel(|thread| {
        for call in 0..20_000 {
            let strategy = &strategies[call % 2];
            let consumer = format!("consumer {thread} {}", call / 3);
            let _ = fixture.charge(strategy, &consumer, 1);
            // Each thread may be in the middle of a log's growth.
            if call % 64 == 0 {
                assert!(fixture.store.stats().bytes <= MIB + THREADS as usize * 4096);
            }
        }
    });
    let stats = fixture.store.stats();
    assert!(stats.bytes <= MIB + 4096 && stats.evictions > 0 && stats.refusals < 8000, "{stats:?}");
}

fn in_parallel(work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}
