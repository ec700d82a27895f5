//! Envoy's rate limit service, as its filters ask it.

mod all_or_none;
mod bytes;
mod callers;
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
use weir_config::{Config, StoreConfig};
use weir_envoy::settings::{EnvoyConfig, with_envoy};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;

use crate::support::server::{Server, config};
use crate::support::stores::{cluster, memory, redis};
use crate::support::{SOON, eventually};

type Client = RateLimitServiceClient<Channel>;

/// The configurations of the cases, a domain each. Most tests use them.
fn files() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rls/files")
}

/// A service under `envoy` and the files of the cases, or a control plane, ready to answer.
fn serve(store: StoreConfig, envoy: EnvoyConfig) -> Server {
    if envoy.xds.is_some() {
        let server = Server::ready(with_envoy(Config { store, ..config() }, envoy));
        let taken = || server.get("/metrics").1.contains("\nweir_xds_acks_total 1\n");
        eventually(SOON, "the limits of the control plane", taken);
        return server;
    }
    let envoy = EnvoyConfig { config: Some(envoy.config.unwrap_or_else(files)), ..envoy };
    Server::ready(with_envoy(Config { store, ..config() }, envoy))
}

async fn client(server: &Server) -> Client {
    RateLimitServiceClient::new(server.channel().await)
}
