//! Weir's reports on its Redis: a node that does not decide is named, with the reason and what to do; other secrets,
//! evictions and a wrong topology are seen. Nothing of that changes where calls go.

mod background;
mod breaker;
#[cfg(feature = "leases")]
mod capabilities;
mod cluster;
#[cfg(feature = "envoy")]
mod engines;
mod evictions;
#[cfg(feature = "leases")]
mod leases;
mod logged;
mod lost;
mod no_scripts;
mod refusals;
mod rights;
mod rules;
mod secrets;

use weir_config::{Config, RedisConfig, ServerConfig, StoreConfig, Topology};
use weir_testing::metrics;

use crate::support::server::{Server, config};
use crate::support::{RedisServer, SOON, eventually, eventually_some, redis_config};

/// A service that is ready without its store, as by default. It shares no usage, which needs rights of its own.
fn on(redis: RedisConfig) -> Config {
    let server = ServerConfig { ready_needs_store: false, ..config().server };
    sharing_usage(false, Config { server, store: StoreConfig::Redis(redis), ..config() })
}

/// The same with usage that is shared or not.
fn sharing_usage(is_shared: bool, config: Config) -> Config {
    #[cfg(feature = "usage")]
    let config = {
        let usage = weir_usage::UsageConfig { shared: is_shared, ..weir_usage::UsageConfig::default() };
        weir_usage::with_usage(config, usage)
    };
    #[cfg(not(feature = "usage"))]
    assert!(!is_shared, "this program has no usage");
    config
}

fn single(redis: &RedisServer) -> RedisConfig {
    redis_config(vec![redis.url()], Topology::Single)
}

/// Waits until the service says exactly that it is ready.
#[track_caller]
fn ready(server: &Server) {
    eventually(SOON, "ready", || server.get("/readyz") == (200, "ready\n".to_owned()));
}

/// Waits until `/readyz` has all of `parts` in a line, which it returns.
#[track_caller]
fn says(server: &Server, parts: &[&str]) -> String {
    let mut last = String::new();
    eventually_some(SOON, &format!("a line with {parts:?}"), || {
        let page = server.get("/readyz").1;
        if page != last {
            println!("{page}");
            last.clone_from(&page);
        }
        page.lines().find(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned)
    })
}

/// The value of a metric of this node.
pub(crate) fn of_node(server: &Server, metric: &str, node: &str) -> Option<String> {
    let page = server.get("/metrics").1;
    metrics::find(&page, &format!("{metric}{{node=\"{node}\"}}"))
}

/// The keys of probes on this server.
fn probe_keys(redis: &RedisServer) -> Vec<String> {
    redis.keys().into_iter().filter(|key| key.contains("}probe:")).collect()
}
