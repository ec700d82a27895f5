//! Keys that hold something else, scripts that are gone, and decisions that share a call.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, MAX_BUCKETS, Op, Rate};
use weir_core::strategy::Strategy;
use weir_store::StoreError;
use weir_time::clock::Clock;
use weir_units::Micros;

use super::{LONG, World, each_engine, keys, strategy};

const GARBAGE: [&str; 4] = [
    "short",
    "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}",
    "twenty-four bytes of text",
    "exactly 24 bytes of text",
];

/// Each of these replaces a state. Someone who can write them breaks the decisions of one key, and no others.
fn sabotages(key: &str) -> Vec<Vec<&str>> {
    let mut all = vec![
        vec!["RPUSH", key, "1", "2", "3"],
        vec!["SADD", key, "member"],
        vec!["HSET", key, "field", "value"],
        vec!["ZADD", key, "1", "member"],
        vec!["RPUSH", key, "0", "then", "some", "text", "here"],
        vec!["RPUSH", key, "0", "1704067200000000", "1", "1704067200000000"],
        vec!["RPUSH", key, "0", "-5", "1"],
        vec!["RPUSH", key, "0", "1e300", "nan"],
    ];
    all.extend(GARBAGE.map(|text| vec!["SET", key, text]));
    all
}

#[tokio::test]
async fn a_key_that_holds_something_else_fails_alone() {
    let world = World::start().await;
    let healthy =
        strategy("healthy", &[Algorithm::sliding_log(1_000_000 / 100, Micros::from_secs(3600)).unwrap()]);
    let mut charged = 0;
    for strategy in each_engine(LONG) {
        let key = &keys(&strategy)[0];
        for sabotage in sabotages(key) {
            world.redis.cli(&["DEL", key]);
            world.redis.cli(&sabotage);
            let is_log = strategy.algorithms()[0].engine().name() == "log";
            // A list of plain numbers is how a log looks.
            if is_log && sabotage == ["RPUSH", key, "1", "2", "3"] {
                continue;
            }
            let stored: Vec<u8> = world.redis.query(&["DUMP", key]);
            let (broken, fine) = tokio::join!(
                world.decide(&strategy, Op::Charge, &[1]),
                world.decide(&healthy, Op::Charge, &[1]),
            );
            let unreadable = matches!(broken, Err(StoreError::Unreadable(_)));
            assert!(unreadable, "{} on {sabotage:?}: {broken:?}", strategy.name());
            charged += 1;
            assert_eq!(fine.unwrap()[0].1.remaining, 10_000 - charged);
            assert_eq!(
                world.redis.query::<Vec<u8>>(&["DUMP", key]),
                stored,
                "what is not ours stays as it is"
            );
        }
    }
    assert!(charged > 80 && world.redis.is_responsive());
}

/// A log whose ends are well but that has text in between: only a search would come across it.
#[tokio::test]
async fn a_log_with_text_inside_fails_alone() {
    let world = World::start().await;
    let log = |name| strategy(name, &[Algorithm::sliding_log(5, LONG).unwrap()]);
    let (broken, healthy) = (log("broken"), log("healthy"));
    let key = &keys(&broken)[0];
    let now = Clock::System.now().0.to_string();
    for entries in [
        ["0", "1", "1", "text", "text", &now, "5"],
        ["0", &now, "1", "text", "text", &now, "5"],
        ["0", &now, "text", &now, "text", &now, "5"],
        ["0", "1", "1", "1", "text", &now, "5"],
    ] {
        world.redis.cli(&["DEL", key]);
        world.redis.cli(&[&["RPUSH", key][..], &entries].concat());
        for op in [Op::Charge, Op::Force, Op::Peek] {
            let (broken, fine) =
                tokio::join!(world.decide(&broken, op, &[4]), world.decide(&healthy, Op::Peek, &[1]));
            assert_eq!(fine.map(|answers| answers[0].1.remaining), Ok(5));
            assert!(matches!(broken, Err(StoreError::Unreadable(_))), "{op:?} on {entries:?}: {broken:?}");
        }
    }
}

/// Numbers where numbers belong, but such as no limit has ever stored: whatever they decide, the
/// neighbours in the call are answered.
#[tokio::test]
async fn absurd_numbers_change_no_other_key() {
    let world = World::start().await;
    let mut connection = world.redis.connection();
    let healthy = strategy("healthy", &[Algorithm::sliding_log(5, LONG).unwrap()]);
    let all = each_engine(LONG);
    let now = Clock::System.now().0 as f64;
    let two_52 = (1_u64 << 52) as f64;
    let absurd =
        [0.0, 1.0, now, two_52, 2.0 * two_52 - 1.0, 4.0 * two_52, -1.0, 0.5, f64::NAN, f64::INFINITY];
    for one in absurd {
        for two in absurd {
            for three in absurd {
                for strategy in &all {
                    let key = &keys(strategy)[0];
                    let packed = |numbers: &[f64]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
                    let stored: Vec<u8> = match strategy.algorithms()[0].engine().name() {
                        "interval" if three == 0.0 => packed(&[one, two]),
                        "bucket" | "window" => packed(&[one, two, three]),
                        "sliding" => packed(&[now.min(three), one, two, three]),
                        "slots" => packed(&[one, two, three, one.max(4.0), now, two]),
                        "sparse" => packed(&[one, two, three, 0.0, one, now, three, now, two]),
                        "log" => {
                            let entries = [0.0, one, two, now, three, one.max(now), two.abs()];
                            let _: () = redis::cmd("DEL").arg(key).query(&mut connection).unwrap();
                            let entries = entries.map(|it| it.to_string());
                            redis::cmd("RPUSH").arg(key).arg(&entries).exec(&mut connection).unwrap();
                            vec![]
                        }
                        _ => continue,
                    };
                    if !stored.is_empty() {
                        redis::cmd("SET").arg(key).arg(&stored).exec(&mut connection).unwrap();
                    }
                    let (absurd, fine) = tokio::join!(
                        world.decide(strategy, Op::Charge, &[1]),
                        world.decide(&healthy, Op::Peek, &[1]),
                    );
                    let fine = fine.map(|answers| answers[0].1.remaining);
                    assert_eq!(fine, Ok(5), "{} of {one}, {two}, {three}", strategy.name());
                    let fails_alone = matches!(absurd, Ok(_) | Err(StoreError::Unreadable(_)));
                    assert!(fails_alone, "{} of {one}, {two}, {three}: {absurd:?}", strategy.name());
                }
            }
        }
    }
}

/// A state that claims more parts than any limit has is refused as it is, and not searched or written.
#[tokio::test]
async fn a_sparse_state_of_more_parts_than_any_has_is_not_written() {
    let world = World::start().await;
    let all = each_engine(LONG).into_iter().filter(|one| one.algorithms()[0].engine().name() == "sparse");
    let now = Clock::System.now().0 as f64;
    let mut seen = 0;
    for strategy in all {
        let key = &keys(&strategy)[0];
        for parts in [3_601.0, 1e6, f64::from(i32::MAX), now] {
            let numbers = [1.0, 2.0 * parts, now, 0.0, 0.0, now, 0.0, now, 4.0];
            let stored: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
            let mut connection = world.redis.connection();
            redis::cmd("SET").arg(key).arg(&stored).exec(&mut connection).unwrap();
            let answer = world.decide(&strategy, Op::Charge, &[1]).await;
            assert!(matches!(answer, Err(StoreError::Unreadable(_))), "{parts}: {answer:?}");
            assert_eq!(world.redis.query::<Vec<u8>>(&["GET", key]), stored);
            seen += 1;
        }
    }
    assert!(seen > 0);
    assert_eq!(MAX_BUCKETS, 3_600, "SPARSE_MOST of sparse.lua");
}

/// One limit that cannot be read keeps all of its decision from being charged.
#[tokio::test]
async fn a_decision_with_an_unreadable_limit_charges_none() {
    let world = World::start().await;
    let bucket = Algorithm::bucket(4, Rate { count: 1, period: Micros::from_secs(10) }).unwrap();
    let log = Algorithm::sliding_log(4, Micros::from_secs(10)).unwrap();
    let both = strategy("both", &[bucket, log]);
    let [first, second] = &keys(&both)[..] else { panic!("two limits") };
    world.redis.cli(&["SET", second, "text"]);
    let failed = world.decide(&both, Op::Charge, &[1]).await;
    assert!(matches!(failed, Err(StoreError::Unreadable(_))), "{failed:?}");
    assert_eq!(world.redis.pttl(first), -2, "the first limit was charged");
    world.redis.cli(&["DEL", second]);
    assert!(world.decide(&both, Op::Charge, &[4]).await.unwrap()[0].0.allowed);
}

/// A restart or a `SCRIPT FLUSH` removes the script. Weir sends it again, and no caller sees an error.
#[tokio::test]
async fn a_lost_script_is_sent_again() {
    let world = World::start().await;
    let all = each_engine(LONG);
    for round in 1..=4 {
        for strategy in &all {
            world.redis.flush_scripts();
            let (verdict, limit) = world.ask(strategy, Op::Charge, 1).await;
            assert!(verdict.allowed && limit.remaining == 4 - round, "{} was charged twice", strategy.name());
        }
    }
}

#[tokio::test]
async fn costs_of_one_call_are_decided_in_order() {
    let world = World::start().await;
    for strategy in each_engine(LONG) {
        if strategy.algorithms()[0].counts_denied() {
            continue;
        }
        let answers = world.decide(&strategy, Op::Charge, &[1, 4, 0, 2, 1, 1, 5]).await.unwrap();
        let observed: Vec<_> =
            answers.iter().map(|(verdict, limit)| (verdict.allowed, limit.remaining)).collect();
        let expected = [(true, 3), (false, 3), (true, 3), (true, 1), (true, 0), (false, 0), (false, 0)];
        assert_eq!(observed, expected, "{}", strategy.name());
    }
}

/// Callers at the same moment share script calls, and are decided one after the other.
#[tokio::test]
async fn callers_that_share_a_call_get_exactly_the_limit() {
    let world = Arc::new(World::start().await);
    let limit = 100;
    let hour = Micros::from_secs(3600);
    let strategies = [
        strategy("shared-bucket", &[Algorithm::bucket(limit, Rate { count: limit, period: hour }).unwrap()]),
        strategy("shared-log", &[Algorithm::sliding_log(limit, hour).unwrap()]),
    ];
    world.ask(&strategies[0], Op::Peek, 0).await;
    let before = calls(&world);
    let tasks: Vec<_> = (0..1000)
        .map(|caller| {
            let (world, strategy) = (Arc::clone(&world), Arc::clone(&strategies[caller % 2]));
            tokio::spawn(async move { (caller % 2, admitted(&world, &strategy).await) })
        })
        .collect();
    let mut all = [0, 0];
    for task in tasks {
        let (strategy, admitted) = task.await.unwrap();
        all[strategy] += u64::from(admitted);
    }
    assert_eq!(all, [limit, limit]);
    let calls = calls(&world) - before;
    assert!(calls < 100, "1000 decisions took {calls} calls");
}

async fn admitted(world: &World, strategy: &Arc<Strategy>) -> bool {
    let decision = weir_store::Decision::new(strategy, super::SUBJECT, Op::Charge, &[1]);
    let decided = weir_store::decide_one(&world.store, &decision).verdicts().await;
    decided.unwrap().decisions[0].allowed
}

/// Script calls that the server has answered.
fn calls(world: &World) -> u64 {
    world.redis.script_calls() + world.redis.command_stat("eval", "calls")
}
