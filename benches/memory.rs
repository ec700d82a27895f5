//! The cost of one decision in the memory store: clock, key, digest, lock and engine.
//!
//! `cargo bench --bench memory`
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use weir_config::MemoryConfig;
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::memory::MemoryStore;
use weir_store::{Answers, Decision, Store as _, decide_one};
use weir_time::clock::Clock;
use weir_units::Micros;

fn main() {
    divan::main();
}

fn strategy() -> Arc<Strategy> {
    let rate = Rate { count: 1_000_000, period: Micros::from_secs(1) };
    let algorithm = Algorithm::bucket(1_000_000, rate).unwrap();
    let scope = Scope::new(&[Field::Resource, Field::Consumer]);
    let limits = vec![Limit { name: "each".into(), scope, algorithm }];
    Arc::new(Strategy::new("bench", limits, false, FailurePolicy::Error).unwrap())
}

fn store() -> MemoryStore {
    MemoryStore::new(&MemoryConfig { budget: 4 << 30, ..MemoryConfig::default() }, Clock::System)
}

/// The memory store is always ready.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waits for nothing"),
    }
}

fn decide(store: &MemoryStore, strategy: &Arc<Strategy>, consumer: &str) -> bool {
    let subject = Subject { resource: "zewtopia.com/tigerfeeding", consumer, ..Subject::default() };
    let decided = decide_one(store, &Decision::new(strategy, subject, Op::Charge, &[1]));
    now(decided.verdicts()).unwrap().decisions[0].allowed
}

/// One decision on one of so many live keys.
#[divan::bench(args = [1, 1_000, 100_000, 1_000_000, 10_000_000])]
fn live_keys(bencher: Bencher<'_, '_>, keys: u64) {
    let (store, strategy) = (store(), strategy());
    for key in 0..keys {
        decide(&store, &strategy, &format!("user_{key}"));
    }
    let mut random = 1_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("user_{}", (random >> 33) % keys)
    };
    bencher
        .with_inputs(&mut next)
        .bench_local_refs(|consumer| black_box(decide(&store, &strategy, consumer)));
}

/// Two workers, on keys of their own.
#[divan::bench(threads = 2)]
fn two_workers(bencher: Bencher<'_, '_>) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (store, strategy) = (store(), strategy());
    bencher
        .with_inputs(|| format!("user_{}", NEXT.fetch_add(1, Ordering::Relaxed) % 100_000))
        .bench_refs(|consumer| black_box(decide(&store, &strategy, consumer)));
}

/// As many at a time that two threads meet, however long it takes to begin.
const MANY: usize = 100_000;

/// Two workers on one key: what a decision takes each of them.
#[divan::bench(threads = 2, sample_count = 50, sample_size = 1)]
fn two_workers_one_key(bencher: Bencher<'_, '_>) {
    let (store, strategy) = (store(), strategy());
    bencher.counter(ItemsCount::new(MANY)).bench(|| {
        for _ in 0..MANY {
            black_box(decide(&store, &strategy, "hot"));
        }
    });
}

/// The same by one and by two, as many at a time as a service decides together that have arrived together.
#[divan::bench(args = [1, 4, 16], threads = [1, 2], sample_count = 50, sample_size = 1)]
fn two_workers_one_key_together(bencher: Bencher<'_, '_>, together: usize) {
    let (store, strategy) = (store(), strategy());
    let subject = Subject { resource: "zewtopia.com/tigerfeeding", consumer: "hot", ..Subject::default() };
    bencher.counter(ItemsCount::new(MANY)).bench(|| {
        let decisions = vec![Decision::new(&strategy, subject, Op::Charge, &[1]); together];
        let mut answers = Answers::default();
        for _ in 0..MANY / together {
            answers.clear();
            store.decide(black_box(&decisions), &mut answers);
        }
        black_box(&answers.each.len());
    });
}

/// The same by one worker without contention.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn one_worker_one_key(bencher: Bencher<'_, '_>) {
    let (store, strategy) = (store(), strategy());
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        for _ in 0..MANY {
            black_box(decide(&store, &strategy, "hot"));
        }
    });
}

/// The same decision without a lock: the key is digested, the clock is read, and one word is swapped.
#[divan::bench(threads = [1, 2], sample_count = 50, sample_size = 1)]
fn compare_and_swap(bencher: Bencher<'_, '_>) {
    let (word, secret) = (AtomicU64::new(0), KeySecret::random());
    bencher.counter(ItemsCount::new(MANY)).bench(|| {
        for _ in 0..MANY {
            let digest = secret.digest(black_box(b"a text as long as that of a key that is decided"));
            let taken = Clock::System.now().0 ^ black_box(digest) as u64;
            let mut seen = word.load(Ordering::Relaxed);
            while let Err(other) = word.compare_exchange_weak(
                seen,
                seen.wrapping_add(taken),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                seen = other;
            }
        }
    });
}
