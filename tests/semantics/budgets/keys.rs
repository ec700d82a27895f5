//! The keys that holds leave in Redis, on its own clock: their expiries, their writers, and keys of other kinds in
//! their places.

use weir_config::Topology;
use weir_core::algorithm::Algorithm;
use weir_core::key::{self, KeyPrefix, KeySecret, Namespace, write_tag};
use weir_store::{BudgetOp, LimitSet, StoreError};
use weir_time::clock::Clock;
use weir_units::Micros;

use super::paired::{KNOWN_FOR, MAX, Paired};
use crate::support::{RedisServer, redis_store};

const HOLD: Option<Micros> = Some(Micros::from_secs(100));

fn limits() -> [Algorithm; 2] {
    // Of a window of a day parts end with the hold, but for those near midnight.
    let day = Micros::from_secs(86_400);
    [10, 8].map(|limit| Algorithm::fixed_window(limit, day, true, false).unwrap())
}

/// The keys of the parts of the second limit, and of the record of a hold.
fn keys(paired: &Paired<'_>, id: &str) -> [String; 2] {
    let (strategy, subject) = (&*paired.strategy, paired.subject());
    let mut tag = Vec::new();
    write_tag(&mut tag, strategy, &subject);
    let prefix: KeyPrefix<'_> = Namespace::DEFAULT.prefix(KeySecret::BUILT_IN.hash(&tag));
    let (mut parts, mut record) = (Vec::new(), Vec::new());
    key::write_parts_key(&mut parts, prefix, strategy, &strategy.limits()[1], &subject);
    key::write_hold_key(&mut record, prefix, strategy, &subject, id);
    [parts, record].map(|key| String::from_utf8(key).unwrap())
}

/// Asserts that a key expires after `span`, rounded up, and 1 ms; a call may take a few.
fn goes_after(redis: &RedisServer, key: &str, span: Micros) {
    let (left, span) = (redis.pttl(key), i64::try_from(span.0 / 1000).unwrap());
    assert!((span - 2_000..=span + 2).contains(&left), "{key}: {left} ms left of {span}");
}

#[tokio::test]
async fn keys_go_with_what_they_hold() {
    let redis = RedisServer::start();
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::System).await;
    let mut paired = Paired::new(&store, "bob", &limits());
    let held = paired.ask(3, "a", HOLD).await.unwrap().held_for.unwrap();
    let [parts, record] = keys(&paired, "a");
    goes_after(&redis, &parts, held);
    goes_after(&redis, &record, Micros(held.0 + KNOWN_FOR.0));
    let longer = paired.ask(1, "b", Some(MAX)).await.unwrap().held_for.unwrap();
    goes_after(&redis, &parts, longer);
    assert_eq!(redis.query::<usize>(&["STRLEN", &parts]), 16 + 2 * 16);
    assert_eq!(redis.query::<usize>(&["STRLEN", &record]), 56 + 48);
    paired.settle(1, "b").await.unwrap();
    goes_after(&redis, &parts, held);
    goes_after(&redis, &keys(&paired, "b")[1], KNOWN_FOR);
    paired.settle(2, "a").await.unwrap();
    goes_after(&redis, &record, KNOWN_FOR);
    assert_eq!(redis.pttl(&parts), -2, "without parts there is no key");
}

#[tokio::test]
async fn what_changes_nothing_writes_nothing() {
    let redis = RedisServer::start();
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::System).await;
    let mut paired = Paired::new(&store, "bob", &limits());
    paired.ask(9, "a", HOLD).await.unwrap();
    paired.ask(9, "b", None).await.unwrap();
    paired.tell(BudgetOp::Refund(3, LimitSet::ALL), "").await.unwrap();
    assert!(redis.keys().is_empty(), "{:?}", redis.keys());
    paired.ask(4, "a", HOLD).await.unwrap();
    let dump = |key: &String| redis.query::<Vec<u8>>(&["DUMP", key]);
    let stored: Vec<Vec<u8>> = redis.state_keys().iter().map(dump).collect();
    assert!(!paired.ask(5, "b", HOLD).await.unwrap().allowed);
    paired.ask(4, "a", HOLD).await.unwrap();
    assert!(matches!(paired.ask(3, "a", HOLD).await, Err(StoreError::OtherContents)));
    let after: Vec<Vec<u8>> = redis.state_keys().iter().map(dump).collect();
    assert_eq!(stored, after);
}

/// A key that holds something else fails its own decisions, and nothing of them stays.
#[tokio::test]
async fn a_key_of_something_else_fails_alone() {
    let redis = RedisServer::start();
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::System).await;
    for (number, sabotage) in [
        &["SET", "short"][..],
        &["SET", "exactly 32 bytes of a plain text"],
        &["SET", "exactly 104 bytes of a plain text, which are as many as the record of a hold of one limit has, or so ..."],
        &["RPUSH", "1"],
        &["HSET", "f", "v"],
    ]
    .into_iter()
    .enumerate()
    {
        let mut paired = Paired::new(&store, &format!("bob {number}"), &limits());
        paired.ask(3, "a", HOLD).await.unwrap();
        let all = keys(&paired, "a");
        for key in &all {
            let kept = format!("kept:{key}");
            redis.cli(&["RENAME", key, &kept]);
            redis.cli(&[&[sabotage[0], key], &sabotage[1..]].concat());
            let broken = [paired.ask(3, "a", HOLD).await, paired.settle(1, "a").await];
            let is_unreadable = |it: &Result<_, _>| matches!(it, Err(StoreError::Unreadable(_)));
            assert!(broken.iter().all(is_unreadable), "{key} {sabotage:?}: {broken:?}");
            redis.cli(&["DEL", key]);
            redis.cli(&["RENAME", &kept, key]);
        }
        paired.settle(1, "a").await.unwrap();
    }
}
