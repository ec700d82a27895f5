//! Ten thousand callers at once on one key get exactly the permits that there are. When their holders have died, all
//! permits are free at the ttl, to the microsecond.

use tonic::transport::Channel;
use weir_config::{Config, RedisConfig, ServerConfig, ServerLimits, StoreConfig};
use weir_core::key::KeySecret;
use weir_core::strategy::{FailurePolicy, Field, Resources, Rules, Scope, Strategy};
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::{AcquireRequest, Reason};
use weir_units::Micros;

use super::world::numbers;
use crate::support::server::{BASE, Server, config};
use crate::support::stores;

const CALLERS: usize = 10_000;
const CONNECTIONS: usize = 20;
const LIMIT: usize = 100;
const TTL: u64 = 30_000_000;

type Client = ConcurrencyServiceClient<Channel>;

#[tokio::test]
async fn memory() {
    exactly_the_permits(stores::memory(), CALLERS).await;
}

#[tokio::test]
async fn redis() {
    exactly_the_permits(patient(stores::redis()), CALLERS).await;
}

/// The way to a cluster differs, what the script does is the same.
#[tokio::test]
async fn cluster() {
    exactly_the_permits(patient(stores::cluster()), CALLERS / 10).await;
}

fn patient(store: StoreConfig) -> StoreConfig {
    let StoreConfig::Redis(redis) = store else { return store };
    StoreConfig::Redis(RedisConfig { max_waiting: CALLERS, ..redis })
}

async fn exactly_the_permits(store: StoreConfig, callers: usize) {
    let rule = weir_core::strategy::ConcurrencyRule::new(numbers(LIMIT as u64)).unwrap();
    let scope = Scope::new(&[Field::Resource]);
    let strategy = Strategy::of_leases("exports", scope, rule, FailurePolicy::Error).unwrap();
    let rules = Rules::new(vec![strategy], Resources::default());
    // An open call counts by 12 KiB, so 64 MiB are enough for half of them.
    let limits = ServerLimits { max_buffered_bytes: 256 << 20, ..config().server.limits };
    let service = ServerConfig { limits, ..config().server };
    let key_secret = Some(KeySecret::random());
    let server = Server::ready(Config { store, rules, key_secret, server: service, ..config() });
    assert_eq!(granted(&server, "first", callers).await, LIMIT);
    // The holders are gone, and none of them renews.
    server.clock.set(Micros(BASE.0 + TTL - 1));
    assert_eq!(granted(&server, "early", CONNECTIONS).await, 0);
    server.clock.set(Micros(BASE.0 + TTL));
    assert_eq!(granted(&server, "second", callers / 10).await, LIMIT);
}

/// Counts the callers that get a permit. Each has an id of its own, and all others are denied.
async fn granted(server: &Server, round: &str, callers: usize) -> usize {
    let mut asking = Vec::with_capacity(callers);
    for connection in 0..CONNECTIONS {
        let client = Client::new(server.channel().await);
        for number in 0..callers / CONNECTIONS {
            let (mut client, id) = (client.clone(), format!("{round} {connection} {number}"));
            let strategy = "exports".to_owned();
            let request = AcquireRequest { resource: "hot".to_owned(), strategy, id, ..Default::default() };
            asking.push(tokio::spawn(async move { client.acquire(request).await }));
        }
    }
    let mut granted = 0;
    for caller in asking {
        let answer = caller.await.unwrap().unwrap().into_inner();
        let reason = if answer.allowed { Reason::Ok } else { Reason::Limited };
        assert_eq!(answer.reason(), reason, "{answer:?}");
        assert!(answer.in_flight <= Some(LIMIT as u64), "{answer:?}");
        granted += usize::from(answer.allowed);
    }
    granted
}
