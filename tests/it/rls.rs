//! Envoy's rate limit service, as its filters ask it.

mod bytes;
mod cases;
mod concurrency;
mod conformance;
mod large;
mod notation;
mod play;
mod properties;
mod quirks;
mod status;
mod wire;

use std::path::PathBuf;

use tonic::transport::Channel;
use weir::config::{Config, EnvoyConfig, MemoryConfig, RedisConfig, StoreConfig, Topology};
use weir::proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;

use crate::support::server::{Server, config};
use crate::support::{SOON, eventually, redis_config, shared_cluster, shared_redis};

type Client = RateLimitServiceClient<Channel>;

/// What most tests ask about: the configurations of the cases, a domain each.
fn files() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/rls/files")
}

/// A service under `envoy` and the files of the cases, ready to answer.
fn serve(store: StoreConfig, envoy: EnvoyConfig) -> Server {
    let envoy = EnvoyConfig { config: Some(envoy.config.unwrap_or_else(files)), ..envoy };
    let server = Server::start(Config { store, envoy, ..config() });
    eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);
    server
}

async fn client(server: &Server) -> Client {
    RateLimitServiceClient::new(server.channel().await)
}

fn memory() -> StoreConfig {
    StoreConfig::Memory(MemoryConfig::default())
}

fn redis() -> StoreConfig {
    on_redis(vec![shared_redis().url()], Topology::Single)
}

fn cluster() -> StoreConfig {
    on_redis(shared_cluster().urls(), Topology::Cluster)
}

/// With room for all callers of a test to wait at once.
fn on_redis(nodes: Vec<String>, topology: Topology) -> StoreConfig {
    StoreConfig::Redis(RedisConfig { max_waiting: 20_000, ..redis_config(nodes, topology) })
}
