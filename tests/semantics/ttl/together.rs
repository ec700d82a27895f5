//! Decisions of one kind that share a call: what is under their keys is read at once, and each is still
//! decided as if it were alone.

use std::sync::Arc;
use weir_testing::DecideOne as _;

use futures_util::future::join_all;
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::{KeySecret, Namespace, Subject, write_key, write_tag};
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::{Decision, StoreError, Verdicts};
use weir_time::clock::Clock;

use super::{LONG, World, strategy};

const CALLERS: usize = 24;

/// Lists of limits that are decided the short way.
pub(super) fn plain() -> Vec<Arc<Strategy>> {
    let bucket = Algorithm::bucket(4, Rate { count: 1, period: LONG }).unwrap();
    let window = Algorithm::fixed_window(4, LONG, true, false).unwrap();
    let sliding = Algorithm::sliding_window(4, LONG).unwrap();
    let interval = Algorithm::interval_refill(4, 1, LONG, false).unwrap();
    let slots = Algorithm::bucketed_window(4, LONG, 4, true).unwrap();
    let log = Algorithm::sliding_log(4, LONG).unwrap();
    vec![
        strategy("bucket", &[bucket]),
        strategy("window", &[window]),
        strategy("sliding", &[sliding]),
        strategy("interval", &[interval]),
        strategy("slots", &[slots]),
        strategy("log", &[log]),
        strategy("two", &[bucket, window]),
        strategy("three", &[sliding, bucket, window]),
        strategy("log-first", &[log, bucket]),
        strategy("log-last", &[slots, interval, log]),
    ]
}

fn subject(consumer: &str) -> Subject<'_> {
    Subject { resource: "resource", consumer, ..Subject::default() }
}

/// The key of the last limit.
fn last_key(strategy: &Strategy, consumer: &str) -> String {
    let (mut tag, mut key) = (Vec::new(), Vec::new());
    write_tag(&mut tag, strategy, &subject(consumer));
    let limit = strategy.limits().last().unwrap();
    write_key(
        &mut key,
        Namespace::DEFAULT.prefix(KeySecret::BUILT_IN.hash(&tag)),
        strategy,
        limit,
        &subject(consumer),
    );
    String::from_utf8(key).unwrap()
}

/// The answers to all callers, who ask at once.
pub(super) async fn everyone(
    world: &World,
    strategy: &Arc<Strategy>,
    op: Op,
) -> Vec<Result<Verdicts, StoreError>> {
    let ask = async |caller: usize| {
        let consumer = format!("consumer-{caller}");
        let subject = subject(&consumer);
        let decision = Decision::new(strategy, subject, Op::Peek, &[]);
        let mut out = Verdicts::default();
        world.store.decide_one(&decision, op, &[1], &mut out).await.map(|()| out)
    };
    join_all((0..CALLERS).map(ask)).await
}

fn summary(answer: &Verdicts) -> (bool, Vec<u64>) {
    (answer.decisions[0].allowed, answer.limits.iter().map(|limit| limit.remaining).collect())
}

/// A key of another type is no absent one, whether it is charged, denied or looked at.
#[tokio::test]
async fn what_is_of_another_type_fails_alone() {
    let world = World::start().await;
    for strategy in plain() {
        let bad: Vec<_> = (0..CALLERS)
            .step_by(5)
            .map(|caller| last_key(&strategy, &format!("consumer-{caller}")))
            .collect();
        // A list of numbers is how a log looks.
        let of_log = strategy.algorithms().last().unwrap().engine().name() == "log";
        let other = if of_log { ["SADD", "a member"] } else { ["RPUSH", "an entry"] };
        for key in &bad {
            world.redis.cli(&[other[0], key, other[1]]);
        }
        let stored =
            || bad.iter().map(|key| world.redis.query::<Vec<u8>>(&["DUMP", key])).collect::<Vec<_>>();
        let before = stored();
        let limits = strategy.limits().len();
        for (op, left) in [(Op::Peek, 4), (Op::Charge, 3), (Op::Charge, 2), (Op::Peek, 2)] {
            for (caller, answer) in everyone(&world, &strategy, op).await.iter().enumerate() {
                let name = strategy.name();
                if caller % 5 == 0 {
                    let wrong =
                        matches!(answer, Err(StoreError::Unreadable(why)) if why.contains("WRONGTYPE"));
                    assert!(wrong, "{name}, {caller}, {op:?}: {answer:?}");
                } else {
                    assert_eq!(
                        answer.as_ref().map(summary),
                        Ok((true, vec![left; limits])),
                        "{name}, {op:?}"
                    );
                }
            }
        }
        assert_eq!(stored(), before, "what is not ours stays as it is");
        let first = strategy.limits().first().unwrap().name.clone();
        let keys: Vec<String> = world.redis.query(&["KEYS", &format!("*{}:{first}|*", strategy.name())]);
        let unharmed = CALLERS - bad.len() + if limits == 1 { bad.len() } else { 0 };
        assert_eq!(keys.len(), unharmed, "a decision that failed charged its first limit");
    }
}

/// Numbers that no limit has ever stored give an error or a decision. Other decisions of the same call do not change.
#[tokio::test]
async fn absurd_numbers_do_not_change_other_decisions() {
    let world = World::start().await;
    let mut connection = world.redis.connection();
    let (now, two_52) = (Clock::System.now().0 as f64, (1_u64 << 52) as f64);
    let span = LONG.0 as f64;
    let absurd = [0.0, 1.0, now, two_52, 4.0 * two_52, -1.0, 0.5, span, f64::NAN, f64::INFINITY];
    for strategy in plain().into_iter().take(5) {
        let key = last_key(&strategy, "consumer-7");
        for one in absurd {
            for two in absurd {
                for three in absurd {
                    let numbers: &[f64] = match strategy.name() {
                        "bucket" => &[one, two, span, three],
                        "window" => &[one, two, span],
                        "interval" => &[one, two, three],
                        "slots" if three.is_nan() => &[0.0, span / 4.0, 5.0, 0.0, one, two],
                        "slots" => &[1.0, span / 4.0, 5.0, one, now, two, three, one],
                        _ => &[one, two, three, span],
                    };
                    let stored: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
                    redis::cmd("SET").arg(&key).arg(&stored).exec(&mut connection).unwrap();
                    let answers = everyone(&world, &strategy, Op::Peek).await;
                    let charged = everyone(&world, &strategy, Op::Charge).await;
                    for (caller, answer) in answers.iter().chain(&charged).enumerate() {
                        let fine = match answer {
                            Ok(_) => true,
                            Err(StoreError::Unreadable(_)) => caller % CALLERS == 7,
                            Err(_) => false,
                        };
                        assert!(fine, "{} of {numbers:?}: {answer:?}", strategy.name());
                    }
                }
            }
        }
    }
}

/// A limit that many consumers share is one key many times in a call: each sees what those before it did.
#[tokio::test]
async fn a_key_that_repeats_is_decided_in_order() {
    let world = World::start().await;
    let all = [
        Algorithm::bucket(10, Rate { count: 1, period: LONG }).unwrap(),
        Algorithm::fixed_window(10, LONG, false, false).unwrap(),
        Algorithm::sliding_window(10, LONG).unwrap(),
        Algorithm::interval_refill(10, 1, LONG, false).unwrap(),
        Algorithm::bucketed_window(10, LONG, 4, true).unwrap(),
        Algorithm::sliding_log(10, LONG).unwrap(),
    ];
    for algorithm in all {
        let name = algorithm.engine().name();
        let limit =
            |name: &str, fields: &[Field]| Limit { name: name.into(), scope: Scope::new(fields), algorithm };
        let limits =
            vec![limit("all", &[Field::Resource]), limit("each", &[Field::Resource, Field::Consumer])];
        let shared = Arc::new(Strategy::new(name, limits, false, FailurePolicy::Error).unwrap());
        let alone = strategy(&format!("{name}-alone"), &[algorithm]);
        // Other keys beside them, so that some are there already and some are not.
        everyone(&world, &alone, Op::Charge).await;
        for left in [10_usize, 0] {
            let answers = everyone(&world, &shared, Op::Charge).await;
            let mut seen: Vec<_> = answers.iter().map(|answer| summary(answer.as_ref().unwrap())).collect();
            seen.sort_by_key(|(allowed, left)| (!allowed, std::cmp::Reverse(left[0])));
            for (place, (allowed, remaining)) in seen.iter().enumerate() {
                assert_eq!(*allowed, place < left, "{name}: {seen:?}");
                assert_eq!(remaining[0], left.saturating_sub(place + 1) as u64, "{name}: {seen:?}");
            }
        }
    }
}

/// Decisions work without the right to read many keys at once.
#[tokio::test]
async fn without_the_right_to_read_all_at_once() {
    let world = World::start().await;
    world.redis.cli(&["ACL", "SETUSER", "default", "-mget"]);
    for strategy in plain() {
        for left in [3, 2, 1, 0, 0] {
            let answers = everyone(&world, &strategy, Op::Charge).await;
            assert!(answers.iter().all(|answer| summary(answer.as_ref().unwrap()).1[0] == left));
        }
    }
}
