//! Weir behind a real Envoy, started from what deploy/envoy ships.

mod examples;
mod failure;
mod headers;
mod limits;
mod load;
mod long_restarts;
mod odd_calls;
mod recorder;
mod reload;
mod service;
mod tls;
mod usage;
mod wire;

use std::path::{Path, PathBuf};

use weir_config::Config;
use weir_envoy::settings::{EnvoyConfig, with_envoy};
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use weir_units::Micros;

use crate::support::server::{Server, config};
use crate::support::{SOON, eventually_async};

/// The limits that the examples are for.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/envoy/ratelimit")
}

/// A service with the limits of this directory, whose clock stands still.
fn weir(limits: PathBuf) -> Server {
    weir_with(EnvoyConfig { config: Some(limits), ..EnvoyConfig::default() })
}

fn weir_with(envoy: EnvoyConfig) -> Server {
    Server::start(with_envoy(config(), envoy))
}

/// Lets this much time pass.
fn later(weir: &Server, millis: u64) {
    weir.clock.set(Micros(weir.clock.now().0 + millis * 1_000));
}

/// What remains of bob's limit with this key, asked without Envoy. The question has cost 0.
async fn remaining(weir: &Server, key: &str) -> u32 {
    after(weir, key, 0).await
}

/// The same after so many hits.
async fn after(weir: &Server, key: &str, hits: u64) -> u32 {
    let entry = Entry { key: key.to_owned(), value: "bob".to_owned() };
    let descriptor = RateLimitDescriptor {
        entries: vec![entry],
        hits_addend: Some(hits),
        ..RateLimitDescriptor::default()
    };
    let request =
        RateLimitRequest { domain: "edge".to_owned(), descriptors: vec![descriptor], hits_addend: 0 };
    let mut client = RateLimitServiceClient::new(weir.channel().await);
    client.should_rate_limit(request).await.unwrap().into_inner().statuses[0].limit_remaining
}

/// Waits for a request that Envoy sends when a stream has ended. Envoy does not wait for its answer.
async fn until_remaining(weir: &Server, key: &str, expected: u32) {
    let there = async || remaining(weir, key).await == expected;
    eventually_async(SOON, "the request is counted", there).await;
}
