//! Every key has an expiry, and it is the time until the key is as good as absent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::strategy::Strategy;
use weir_units::Micros;

use super::{LONG, World, each_engine, is_bucket, keys, strategy};
use crate::support::{SOON, eventually};

#[tokio::test]
async fn every_key_expires_when_it_is_fresh() {
    let world = World::start().await;
    for strategy in each_engine(LONG) {
        let mut story =
            vec![(Op::Charge, 1), (Op::Charge, 2), (Op::Peek, 1), (Op::Charge, 3), (Op::Charge, 0)];
        story.extend([(Op::Charge, 1), (Op::Charge, 1), (Op::Force, 3), (Op::Charge, 0), (Op::Force, 1)]);
        if is_bucket(&strategy) {
            story.extend([(Op::Refund, 2), (Op::AtMost, 2), (Op::Reserve { max_wait: Micros(1 << 40) }, 2)]);
            story.extend([(Op::Refund, 1), (Op::Charge, 2)]);
        }
        for (op, cost) in story {
            check_expiry(&world, &strategy, op, cost).await;
        }
        world.ask(&strategy, Op::Reset, 0).await;
        assert_eq!(world.redis.pttl(&keys(&strategy)[0]), -2, "a reset leaves no key");
    }
    assert!(world.redis.keys().is_empty());
}

/// A window with `expire` is kept for so long after its last charge, and at most a part and 2 ms longer, whichever script
/// writes it.
#[tokio::test]
async fn a_state_with_an_expiry_of_its_own_stays_for_so_long() {
    let world = World::start().await;
    let expire = Micros(3 * LONG.0);
    for (name, parts, strict) in [("strict", 4, true), ("lenient", 4, false), ("sparse", 400, true)] {
        let algorithm = Algorithm::bucketed_window(9, LONG, parts, strict).unwrap();
        let strategy = strategy(name, &[algorithm.with_expiry(expire).unwrap()]);
        for (op, cost) in [(Op::Charge, 1), (Op::Charge, 2), (Op::AtMost, 2), (Op::Force, 1), (Op::Refund, 1)]
        {
            let before = Instant::now();
            let reset = world.ask(&strategy, op, cost).await.1.reset_after.0.div_ceil(1000);
            let left = u64::try_from(world.redis.pttl(&keys(&strategy)[0])).expect("it expires");
            let elapsed = u64::try_from(before.elapsed().as_millis()).unwrap() + 1;
            let (least, most) = (expire.0 / 1000, (expire.0 + LONG.0 / parts) / 1000 + 2);
            assert!(left + elapsed >= least && left <= most, "{name}, {op:?}: {left} ms left");
            assert!(reset <= LONG.0 * 5 / 4 / 1000, "{name}, {op:?}: fresh after {reset} ms");
        }
    }
}

/// No earlier than the answer's `reset_after`, and at most 2 ms later; a bucket's, whose expiry need not
/// move with every write so, 4 s later. That is rounded up by 2.5 ms before the tenth of a second is cut off: where nothing
/// is cut off, in one run of a hundred, it is 3 ms later.
async fn check_expiry(world: &World, strategy: &Arc<Strategy>, op: Op, cost: u64) {
    let before = Instant::now();
    let reset = world.ask(strategy, op, cost).await.1.reset_after.0;
    let left = u64::try_from(world.redis.pttl(&keys(strategy)[0])).expect("the key is there, and expires");
    let elapsed = u64::try_from(before.elapsed().as_millis()).unwrap() + 1;
    let reported = reset.div_ceil(1000);
    let name = strategy.name();
    assert!(
        left + elapsed >= reported,
        "{name}, {op:?} {cost}: {left} ms left, {reported} ms reported {elapsed} ms ago"
    );
    let grace = if is_bucket(strategy) { 4001 } else { 0 };
    assert!(left <= reported + 2 + grace, "{name}, {op:?} {cost}: {left} ms left, {reported} reported");
}

/// Keys of new buckets go by the tenth of a second: at most that much short of the four seconds that they may
/// outlive their states. By the whole second, Redis once stood still for 20 ms to drop ten thousand at once.
#[tokio::test]
async fn new_buckets_go_by_the_tenth_of_a_second() {
    let world = World::start().await;
    // Fresh again at times that are spread over the second.
    let rate = Rate { count: 1, period: Micros::from_millis(37) };
    for cost in 1..=27 {
        let bucket = Algorithm::bucket(100, rate).unwrap();
        let strategy = strategy(&format!("bucket-{cost}"), &[bucket]);
        let before = Instant::now();
        let reset = world.ask(&strategy, Op::Charge, cost).await.1.reset_after.0;
        let left =
            u64::try_from(world.redis.pttl(&keys(&strategy)[0])).expect("the key is there, and expires");
        let elapsed = u64::try_from(before.elapsed().as_millis()).unwrap() + 1;
        let reported = reset.div_ceil(1000);
        assert!(
            left + elapsed >= reported + 3_900,
            "{left} ms left, {reported} ms reported {elapsed} ms ago"
        );
        assert!(left <= reported + 4_003, "{left} ms left, {reported} reported");
    }
}

/// Denied calls and peeks use no memory.
#[tokio::test]
async fn what_changes_nothing_writes_nothing() {
    let world = World::start().await;
    for strategy in each_engine(LONG) {
        let mut story = vec![(Op::Peek, 1), (Op::Peek, 9), (Op::Charge, 0), (Op::Force, 0), (Op::Reset, 0)];
        if !strategy.algorithms()[0].counts_denied() {
            story.push((Op::Charge, 5));
            story.push((Op::Charge, u64::MAX));
        }
        if is_bucket(&strategy) {
            story.extend([(Op::Refund, 3), (Op::AtMost, 0)]);
            story.push((Op::Reserve { max_wait: Micros(1 << 40) }, 5));
        }
        for (op, cost) in story {
            world.ask(&strategy, op, cost).await;
            assert!(world.redis.keys().is_empty(), "{op:?} {cost} of {} wrote", strategy.name());
        }
        world.ask(&strategy, Op::Charge, 4).await;
        let key = &keys(&strategy)[0];
        let stored: Vec<u8> = world.redis.query(&["DUMP", key]);
        if !strategy.algorithms()[0].counts_denied() {
            world.ask(&strategy, Op::Charge, 1).await;
        }
        world.ask(&strategy, Op::Peek, 1).await;
        world.ask(&strategy, Op::Charge, 0).await;
        assert_eq!(world.redis.query::<Vec<u8>>(&["DUMP", key]), stored, "{}", strategy.name());
        world.ask(&strategy, Op::Reset, 0).await;
    }
}

/// A denied attempt that counts is a write, and expires like any other.
#[tokio::test]
async fn a_counted_denial_expires_too() {
    let world = World::start().await;
    let counting = |strategy: &&Arc<Strategy>| strategy.algorithms()[0].counts_denied();
    let all = each_engine(LONG);
    let strategy = all.iter().find(counting).unwrap();
    assert!(!world.ask(strategy, Op::Charge, 9).await.0.allowed);
    assert!(!world.ask(strategy, Op::Charge, 0).await.0.allowed, "five of four are counted");
    check_expiry(&world, strategy, Op::Charge, 1).await;
}

/// The limit of a key that Redis has forgotten is as if never used, so its expiry is no event at all.
#[tokio::test]
async fn an_expired_key_is_a_fresh_one() {
    let world = World::start().await;
    let all = each_engine(Micros::from_millis(200));
    for strategy in &all {
        assert!(world.ask(strategy, Op::Charge, 4).await.0.allowed);
    }
    for strategy in &all {
        let key = &keys(strategy)[0];
        eventually(SOON, "the key expires", || world.redis.pttl(key) == -2);
        let (verdict, limit) = world.ask(strategy, Op::Peek, 0).await;
        assert!(verdict.allowed && limit.remaining == 4 && limit.reset_after == Micros::ZERO);
        assert!(world.ask(strategy, Op::Charge, 4).await.0.allowed, "{}", strategy.name());
    }
}

/// And it forgets none before: while the answers say that something is used, the key is there. The wait
/// that an answer tells began between the question and its arrival.
#[tokio::test]
async fn no_key_expires_before_it_is_fresh() {
    let world = World::start().await;
    for strategy in each_engine(Micros::from_millis(120)) {
        world.ask(&strategy, Op::Charge, 4).await;
        let asked_at = Instant::now();
        let wait = Duration::from_micros(world.ask(&strategy, Op::Peek, 0).await.1.reset_after.0);
        let (not_before, by) = (asked_at + wait, Instant::now() + wait);
        let key = &keys(&strategy)[0];
        loop {
            let there = world.redis.pttl(key) != -2;
            if Instant::now() >= not_before {
                break;
            }
            assert!(there, "{} was forgotten early", strategy.name());
        }
        eventually(SOON, "the time is over", || Instant::now() >= by);
        assert!(world.ask(&strategy, Op::Charge, 4).await.0.allowed, "{} is not fresh", strategy.name());
    }
}
