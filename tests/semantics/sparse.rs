//! Bucketed windows of more than 360 parts on Redis: only parts with hits take bytes.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_config::Topology;
use weir_core::algorithm::{Algorithm, Op};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{Decision, Verdicts};
use weir_testing::{DecideOne as _, RedisServer};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use crate::support::rules::strategy;
use crate::support::server::BASE;
use crate::support::stores::redis_store;

const SECOND: u64 = 1_000_000;
const PARTS: u64 = 3_600;

struct World {
    redis: RedisServer,
    clock: ManualClock,
    store: RedisStore,
    strategy: Arc<Strategy>,
}

impl World {
    async fn new() -> Self {
        let redis = RedisServer::start();
        let clock = ManualClock::at(BASE);
        let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
        let limit = Algorithm::bucketed_window(1 << 40, Micros(PARTS * SECOND), PARTS, true).unwrap();
        let strategy =
            Arc::new(strategy("sparse", &[("each", &[Field::Consumer], limit)], FailurePolicy::Error));
        Self { redis, clock, store, strategy }
    }

    /// Decides, and returns the length of the state.
    async fn decide(&self, op: Op, cost: u64) -> u64 {
        let subject = Subject { consumer: "bob", ..Subject::default() };
        let decision = Decision::new(&self.strategy, subject, op, &[]);
        self.store.decide_one(&decision, op, &[cost], &mut Verdicts::default()).await.unwrap();
        let keys = self.redis.state_keys();
        keys.first().map_or(0, |key| self.redis.query(&["STRLEN", key]))
    }
}

/// The first hit once took 31 KB.
#[tokio::test]
async fn a_state_has_64_bytes_and_12_for_each_part_with_hits() {
    let world = World::new().await;
    let mut hit = BTreeSet::new();
    for number in 0..1_500_u64 {
        // Parts one after the other, far apart, and after half a window without any.
        let pause = match number % 100 {
            99 => PARTS / 2,
            50.. => number * 7_919 % 13,
            _ => number % 2,
        };
        world.clock.set(Micros(world.clock.now().0 + pause * SECOND));
        let length = world.decide(Op::Charge, 1).await;
        let now = world.clock.now().0 / SECOND;
        hit.insert(now);
        hit = hit.split_off(&(now - PARTS));
        let most = 64 + 12 * hit.len() as u64;
        assert!(length <= most, "charge {number}: {length} bytes of {} parts, at most {most}", hit.len());
    }
    assert!(hit.len() > 20, "{} parts are left", hit.len());
}

/// A refund takes parts away.
#[tokio::test]
async fn a_refund_gives_back_bytes() {
    let world = World::new().await;
    for _ in 0..40 {
        world.clock.set(Micros(world.clock.now().0 + SECOND));
        world.decide(Op::Charge, 2).await;
    }
    assert!(world.decide(Op::Refund, 61).await <= 64 + 12 * 10);
    assert!(world.decide(Op::Refund, 17).await <= 64 + 12);
    assert_eq!(world.decide(Op::Refund, 2).await, 0, "a limit that is full has no key");
}
