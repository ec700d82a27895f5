//! Ten thousand requests at once on one counter: exactly the limit is OK, on every store.

use weir_config::StoreConfig;
use weir_envoy::settings::EnvoyConfig;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

use super::notation::request;
use super::{client, cluster, memory, redis, serve};
use crate::support::Accelerators;
use crate::support::server::Server;

const REQUESTS: usize = 10_000;
/// Number of requests in the tests with other settings than the default.
const FEWER: usize = 500;
const CONNECTIONS: usize = 20;
const LIMIT: usize = 100;

#[tokio::test]
async fn on_memory() {
    exactly_the_limit(memory(), "", REQUESTS).await;
}

#[tokio::test]
async fn on_redis() {
    on_and_off(&redis()).await;
}

#[tokio::test]
async fn on_a_cluster() {
    on_and_off(&cluster()).await;
}

/// With what stands before the store on and off.
async fn on_and_off(store: &StoreConfig) {
    let StoreConfig::Redis(config) = store else { panic!("{store:?}") };
    for (set, accelerators) in Accelerators::SETS.into_iter().enumerate() {
        let requests = if accelerators.all() { REQUESTS } else { FEWER };
        let store = StoreConfig::Redis(accelerators.config(config.clone()));
        exactly_the_limit(store, &set.to_string(), requests).await;
    }
}

/// The name makes the keys those of this run.
async fn exactly_the_limit(store: StoreConfig, name: &str, requests: usize) {
    let server = serve(store, EnvoyConfig::default());
    let codes = async |asked: &str| codes(&server, &asked.replace('=', &format!("={name}")), requests).await;
    // One counter; two at once, of which one is over sooner; one twice in each request.
    assert_eq!(codes("st [crowd=a]@100/DAY").await, [LIMIT]);
    assert_eq!(codes("st [crowd=b]@100/DAY [crowd=c]@250/DAY").await, [LIMIT, 250]);
    let [first, second] = codes("st [crowd=d]@100/DAY [crowd=d]@100/DAY").await[..] else { panic!() };
    assert_eq!(first + second, LIMIT);
    // Of hits that come in threes, as many as fit.
    assert_eq!(codes("st [crowd=e]@100/DAY +3").await, [LIMIT / 3]);
}

/// Counts the answers with OK of each descriptor.
async fn codes(server: &Server, asked: &str, requests: usize) -> Vec<usize> {
    let asked = request(asked);
    let mut asking = Vec::with_capacity(requests);
    for _ in 0..CONNECTIONS {
        let client = client(server).await;
        for _ in 0..requests / CONNECTIONS {
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
