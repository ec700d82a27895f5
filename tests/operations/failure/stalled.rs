//! Stalls of Weir's own process: it does not run for a while, because its container is throttled or its machine is
//! moved. It reads Redis' answers late, and must not take that for a slow Redis.

use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_testing::DecideOne as _;

use redis::Connection;
use weir_config::{RedisConfig, Topology};
use weir_core::algorithm::Op;
use weir_core::strategy::Strategy;
use weir_store::coalesce::Coalesce;
use weir_store::{Store, StoreError, Verdicts};
use weir_units::Micros;

use super::connections::taken;
use super::{DEADLINE, config, decision, recovered, shared, strategy};
use crate::support::{RedisServer, watched};

const CALLS: usize = 20;

/// The watcher has all the time it wants: the connections are counted.
fn patient(redis: &RedisServer) -> RedisConfig {
    RedisConfig { deadline: Micros::from(DEADLINE), ..config(vec![redis.url()], Topology::Single) }
}

/// Calls are on their way when the thread stalls for longer than the deadline. Their answers are there when
/// it goes on, so that is what their callers get; and the connection stays.
#[tokio::test]
async fn answers_that_have_arrived_are_used() {
    let redis = RedisServer::start();
    let store = Arc::new(watched(&shared(&patient(&redis))).await);
    recovered("the first decision", async || charge(&*store, &strategy(), "warm").await.is_ok()).await;
    let mut own = redis.connection();
    let before = taken(&mut own);
    let each = |attempt| (0..CALLS).map(|index| format!("{attempt}-{index}")).collect();
    for answer in through_a_stall(&redis, &mut own, &store, each).await {
        assert_eq!(answer, Ok(99_999));
    }
    recovered("the next decision", async || charge(&*store, &strategy(), "warm").await.is_ok()).await;
    assert_eq!(taken(&mut own), before, "none was given up");
}

/// The same for callers that wait for one coalesced call.
#[tokio::test]
async fn answers_to_callers_of_one_key_are_used() {
    let redis = RedisServer::start();
    let config = patient(&redis);
    let store = Arc::new(Coalesce::before(watched(&shared(&config)).await, &config));
    recovered("the first decision", async || charge(&*store, &strategy(), "warm").await.is_ok()).await;
    let one = |attempt| vec![format!("{attempt}"); CALLS];
    let answers = through_a_stall(&redis, &mut redis.connection(), &store, one).await;
    let observed: Vec<u64> = answers.into_iter().map(Result::unwrap).collect();
    // The first has been sent too, when it gave up.
    let expected: Vec<u64> = (1..CALLS as u64).map(|index| 99_999 - index).collect();
    assert_eq!(observed, expected);
}

/// The answers to callers of these resources. All of them ask, and then the thread stalls while Redis answers. The
/// first caller gives up before the stall, and its answer is not in the list.
async fn through_a_stall<S: Store>(
    redis: &RedisServer,
    own: &mut Connection,
    store: &Arc<S>,
    resources: impl Fn(u32) -> Vec<String>,
) -> Vec<Result<u64, StoreError>> {
    let strategy = strategy();
    for attempt in 0..100 {
        redis.freeze();
        let began = Instant::now();
        let calls = resources(attempt).into_iter().map(|resource| {
            let (store, strategy) = (Arc::clone(store), Arc::clone(&strategy));
            tokio::spawn(async move { charge(&*store, &strategy, &resource).await })
        });
        let mut calls: Vec<_> = calls.collect();
        settle().await;
        calls.remove(0).abort();
        settle().await;
        redis.thaw();
        // On a machine that stalls by itself this may come too late.
        let in_time = began.elapsed() < DEADLINE / 2;
        std::thread::sleep(DEADLINE + Duration::from_millis(50));
        // Redis answers in order, so the PONG arrives after the answers to the calls.
        redis::cmd("PING").exec(own).unwrap();
        let mut answers = Vec::new();
        for call in calls {
            answers.push(call.await.unwrap());
        }
        if in_time {
            return answers;
        }
    }
    panic!("this machine stalls all the time");
}

/// Lets every other task of this thread's runtime run until it waits.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

async fn charge<S: Store>(store: &S, strategy: &Arc<Strategy>, resource: &str) -> Result<u64, StoreError> {
    let mut out = Verdicts::default();
    store.decide_one(&decision(strategy, resource), Op::Charge, &[1], &mut out).await?;
    Ok(out.limits[0].remaining)
}
