//! Ten thousand requests at once on one counter: exactly the limit is OK, on every store.

use weir::config::{EnvoyConfig, StoreConfig};
use weir::proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

use super::notation::request;
use super::{client, cluster, memory, redis, serve};
use crate::support::server::Server;

const REQUESTS: usize = 10_000;
const CONNECTIONS: usize = 16;
const LIMIT: usize = 100;

#[tokio::test]
async fn on_memory() {
    exactly_the_limit(memory()).await;
}

#[tokio::test]
async fn on_redis() {
    exactly_the_limit(redis()).await;
}

#[tokio::test]
async fn on_a_cluster() {
    exactly_the_limit(cluster()).await;
}

async fn exactly_the_limit(store: StoreConfig) {
    let server = serve(store, EnvoyConfig::default());
    // One counter; two at once, of which one is over sooner; one twice in each request.
    assert_eq!(codes(&server, "st [crowd=a]@100/DAY").await, [LIMIT]);
    assert_eq!(codes(&server, "st [crowd=b]@100/DAY [crowd=c]@250/DAY").await, [LIMIT, 250]);
    let [first, second] = codes(&server, "st [crowd=d]@100/DAY [crowd=d]@100/DAY").await[..] else {
        panic!()
    };
    assert_eq!(first + second, LIMIT);
    // Of hits that come in threes, as many as fit.
    assert_eq!(codes(&server, "st [crowd=e]@100/DAY +3").await, [LIMIT / 3]);
}

/// How often each descriptor was OK.
async fn codes(server: &Server, asked: &str) -> Vec<usize> {
    let asked = request(asked);
    let mut asking = Vec::with_capacity(REQUESTS);
    for _ in 0..CONNECTIONS {
        let client = client(server).await;
        for _ in 0..REQUESTS / CONNECTIONS {
            let (mut client, asked) = (client.clone(), asked.clone());
            asking.push(tokio::spawn(async move { client.should_rate_limit(asked).await }));
        }
    }
    let mut ok = vec![0; asked.descriptors.len()];
    for answer in asking {
        let answer = answer.await.unwrap().unwrap().into_inner();
        let is_ok: Vec<bool> = answer.statuses.iter().map(|status| status.code() == Code::Ok).collect();
        assert_eq!(answer.overall_code() == Code::Ok, is_ok.iter().all(|&ok| ok));
        for (count, is_ok) in ok.iter_mut().zip(is_ok) {
            *count += usize::from(is_ok);
        }
    }
    ok
}
