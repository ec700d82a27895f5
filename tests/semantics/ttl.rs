//! On a real Redis with its own clock. A state expires when it decides like an absent one. A key that holds something
//! else breaks its own decision only.

mod expiry;
mod full;
mod together;
mod unreadable;

use std::sync::Arc;
use weir_testing::DecideOne as _;

use weir_config::Topology;
use weir_core::algorithm::{Algorithm, LimitVerdict, Op, Rate, Verdict};
use weir_core::key::{KeySecret, Namespace, Subject, write_key, write_tag};
use weir_core::strategy::{Attributes, Field, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{Decision, StoreError, Verdicts};
use weir_time::clock::Clock;
use weir_units::Micros;

use crate::support::{self, RedisServer};

const SUBJECT: Subject<'_> =
    Subject { resource: "resource", consumer: "consumer", group: None, attributes: Attributes::NONE };

/// So long that no window ends while a test runs.
const LONG: Micros = Micros::from_secs(40_000);

/// A server of the test's own, and a store on its clock.
struct World {
    redis: RedisServer,
    store: RedisStore,
}

impl World {
    async fn start() -> Self {
        let redis = RedisServer::start();
        let store = support::redis_store(vec![redis.url()], Topology::Single, Clock::System).await;
        Self { redis, store }
    }

    async fn decide(
        &self,
        strategy: &Arc<Strategy>,
        op: Op,
        costs: &[u64],
    ) -> Result<Vec<(Verdict, LimitVerdict)>, StoreError> {
        let decision = Decision::new(strategy, SUBJECT, Op::Peek, &[]);
        let mut out = Verdicts::default();
        self.store.decide_one(&decision, op, costs, &mut out).await?;
        Ok(out.decisions.iter().copied().zip(out.limits.iter().copied()).collect())
    }

    /// One decision over one limit.
    async fn ask(&self, strategy: &Arc<Strategy>, op: Op, cost: u64) -> (Verdict, LimitVerdict) {
        self.decide(strategy, op, &[cost]).await.unwrap()[0]
    }
}

fn strategy(name: &str, algorithms: &[Algorithm]) -> Arc<Strategy> {
    weir_testing::rules::numbered(name, &[Field::Resource, Field::Consumer], algorithms)
}

/// The keys of [`SUBJECT`].
fn keys(strategy: &Strategy) -> Vec<String> {
    let mut tag = Vec::new();
    write_tag(&mut tag, strategy, &SUBJECT);
    let tag = KeySecret::BUILT_IN.hash(&tag);
    let key = |limit| {
        let mut key = Vec::new();
        write_key(&mut key, Namespace::DEFAULT.prefix(tag), strategy, limit, &SUBJECT);
        String::from_utf8(key).unwrap()
    };
    strategy.limits().iter().map(key).collect()
}

/// A limit of four of every engine and kind, that is fresh again after `time` if all of it is used.
fn each_engine(time: Micros) -> Vec<Arc<Strategy>> {
    let quarter = Micros(time.0 / 4);
    let all = [
        ("bucket", Algorithm::bucket(4, Rate { count: 1, period: quarter })),
        ("window-aligned", Algorithm::fixed_window(4, time, false, false)),
        ("window-anchored", Algorithm::fixed_window(4, time, true, false)),
        ("window-counting", Algorithm::fixed_window(4, time, true, true)),
        ("interval", Algorithm::interval_refill(4, 1, quarter, false)),
        ("interval-aligned", Algorithm::interval_refill(4, 1, quarter, true)),
        ("log", Algorithm::sliding_log(4, time)),
        ("log-counting", Algorithm::strict_log(4, time, true, Micros::ZERO)),
        ("sliding", Algorithm::sliding_window(4, Micros(time.0 / 2))),
        ("slots", Algorithm::bucketed_window(4, time, 4, false)),
        ("sparse", Algorithm::bucketed_window(4, time, 400, false)),
    ];
    all.map(|(name, algorithm)| strategy(name, &[algorithm.unwrap()])).to_vec()
}

fn is_bucket(strategy: &Strategy) -> bool {
    strategy.limits()[0].algorithm.engine().name() == "bucket"
}
