//! Weir's own stores, ready to be asked.

use tokio::sync::oneshot;
use weir::clock::Clock;
use weir::config::{RedisConfig, Topology};
use weir::key::KeySecret;
use weir::store::redis::{RedisShared, RedisStore};
use weir::units::Micros;

use super::SOON;

/// A configuration for tests that are not about time: a machine that all of them share, or one that is
/// moved, can keep ten thousand callers waiting for many seconds, and a connection's first answer as well.
pub(crate) fn redis_config(nodes: Vec<String>, topology: Topology) -> RedisConfig {
    let patience = Micros::from_secs(60);
    RedisConfig { nodes, topology, deadline: patience, connect_timeout: patience, ..RedisConfig::default() }
}

/// A store on the current runtime, with its watcher, once it has found its nodes.
pub(crate) async fn redis_store(nodes: Vec<String>, topology: Topology, clock: Clock) -> RedisStore {
    watched(&RedisShared::new(&redis_config(nodes, topology), KeySecret::BUILT_IN, clock)).await
}

/// Starts the watcher on the current runtime and waits until it has found something.
pub(crate) async fn watched(shared: &RedisShared) -> RedisStore {
    let (found, ready) = oneshot::channel();
    let (shared, store) = (shared.clone(), shared.store());
    tokio::spawn(async move {
        let mut found = Some(found);
        let report = |outcome: Result<(), String>| {
            if outcome.is_ok()
                && let Some(found) = found.take()
            {
                let _ = found.send(());
            }
        };
        shared.watch(report).await;
    });
    tokio::time::timeout(SOON, ready).await.expect("Redis is found").expect("the watcher lives");
    store
}
