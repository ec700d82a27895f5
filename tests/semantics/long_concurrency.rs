//! Ten thousand callers at once on one key admit exactly the limit, through the real server, on every
//! store.

use weir_config::{Config, RedisConfig, StoreConfig, Topology};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::{FailurePolicy, Field, Resources, Rules};
use weir_proto::v1::{Reason, ShouldAllowRequest};
use weir_units::Micros;

use crate::support::rules::strategy;
use crate::support::server::{Server, ask_under, config};
use crate::support::{Accelerators, redis_config, shared_cluster, shared_redis, stores};

const CALLERS: usize = 10_000;
/// The number of callers under settings other than the defaults.
const FEWER: usize = 500;
const CONNECTIONS: usize = 20;
const LIMIT: usize = 100;

#[tokio::test]
async fn memory() {
    exactly_the_limit(stores::memory(), "", CALLERS).await;
}

#[tokio::test]
async fn redis() {
    on_redis(redis_config(vec![shared_redis().url()], Topology::Single)).await;
}

#[tokio::test]
async fn cluster() {
    on_redis(redis_config(shared_cluster().urls(), Topology::Cluster)).await;
}

/// With room for all callers to wait at once, so that none is answered by a policy; and with what stands
/// before the store on and off.
async fn on_redis(config: RedisConfig) {
    for accelerators in Accelerators::SETS {
        let callers = if accelerators.all() { CALLERS } else { FEWER };
        let config = accelerators.config(RedisConfig { max_waiting: callers, ..config.clone() });
        exactly_the_limit(StoreConfig::Redis(config), &format!("{accelerators:?}"), callers).await;
    }
}

/// The name makes the keys those of this run.
async fn exactly_the_limit(store: StoreConfig, name: &str, callers: usize) {
    let server = Server::ready(Config { store, rules: rules(), ..config() });
    for strategy in ["bucket", "window", "interval", "log", "strict", "sliding", "slots", "dual"] {
        let ask = ask_under(strategy, &format!("hot {name}"), "crowd");
        assert_eq!(admitted(&server, ask, callers).await, LIMIT, "{strategy} {name}");
    }
}

/// Counts the admitted callers; each of the others must be denied, and by the store.
async fn admitted(server: &Server, ask: ShouldAllowRequest, callers: usize) -> usize {
    let mut asking = Vec::with_capacity(callers);
    for _ in 0..CONNECTIONS {
        let client = server.client().await;
        for _ in 0..callers / CONNECTIONS {
            let (mut client, ask) = (client.clone(), ask.clone());
            asking.push(tokio::spawn(async move { client.should_allow(ask).await }));
        }
    }
    let mut admitted = 0;
    for caller in asking {
        let answer = caller.await.unwrap().unwrap().into_inner();
        let reason = if answer.allowed { Reason::Ok } else { Reason::Limited };
        assert_eq!(answer.reason(), reason, "{}", ask.strategy);
        admitted += usize::from(answer.allowed);
    }
    admitted
}

/// A limit of 100 in every engine, and in a strategy of two limits.
fn rules() -> Rules {
    let (limit, hour) = (LIMIT as u64, Micros::from_secs(3600));
    let bucket = Algorithm::bucket(limit, Rate { count: 1, period: hour }).unwrap();
    let window = Algorithm::fixed_window(limit, hour, false, false).unwrap();
    let interval = Algorithm::interval_refill(limit, 1, hour, false).unwrap();
    let log = Algorithm::sliding_log(limit, hour).unwrap();
    let strict = Algorithm::strict_log(limit, hour, true, Micros::ZERO).unwrap();
    let sliding = Algorithm::sliding_window(limit, hour).unwrap();
    let slots = Algorithm::bucketed_window(limit, hour, 60, true).unwrap();
    let wide = Algorithm::sliding_log(limit * 10, hour).unwrap();
    let resource: &[Field] = &[Field::Resource];
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let strategies = [
        ("bucket", &[("each", both, bucket)][..]),
        ("window", &[("each", both, window)]),
        ("interval", &[("each", both, interval)]),
        ("log", &[("each", both, log)]),
        ("strict", &[("each", both, strict)]),
        ("sliding", &[("each", both, sliding)]),
        ("slots", &[("each", both, slots)]),
        ("dual", &[("everyone", resource, wide), ("each", both, log)]),
    ];
    let strategies = strategies.map(|(name, limits)| strategy(name, limits, FailurePolicy::Error));
    Rules::new(strategies.into(), Resources::default())
}
