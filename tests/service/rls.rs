//! Envoy's rate limit service, as its filters ask it.

mod bytes;
mod cases;
mod concurrency;
mod conformance;
mod counted;
mod notation;
mod play;
mod properties;
mod quirks;
mod status;
mod unlimited;
mod wire;

use std::path::PathBuf;

use tonic::transport::Channel;
use weir_config::{Config, EnvoyConfig, StoreConfig};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;

use crate::support::server::{Server, config};
use crate::support::stores::{cluster, memory, redis};

type Client = RateLimitServiceClient<Channel>;

/// What most tests ask about: the configurations of the cases, a domain each.
fn files() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/service/rls/files")
}

/// A service under `envoy` and the files of the cases, ready to answer.
fn serve(store: StoreConfig, envoy: EnvoyConfig) -> Server {
    let envoy = EnvoyConfig { config: Some(envoy.config.unwrap_or_else(files)), ..envoy };
    Server::ready(Config { store, envoy, ..config() })
}

async fn client(server: &Server) -> Client {
    RateLimitServiceClient::new(server.channel().await)
}
