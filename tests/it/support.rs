//! Real servers for the tests: Redis, a Redis Cluster, and a faulty network in front of them.
//!
//! Nothing here outlives the test binary, however that ends: see [`process`] for the processes and
//! [`scratch`] for the files. So a test may start what it needs, break it, and walk away.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // helpers wait in real time, and look up programs in the real PATH
#![allow(dead_code, unused_imports)] // a helper is complete, whether or not every part of it has a user today

pub(crate) mod certificates;
pub(crate) mod clients;
mod cluster;
pub(crate) mod damage;
pub(crate) mod envoy;
pub(crate) mod frames;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod ports;
mod process;
mod proxy;
mod redis;
pub(crate) mod rules;
pub(crate) mod scratch;
pub(crate) mod sentinels;
pub(crate) mod server;
pub(crate) mod stores;
mod wait;
pub(crate) mod yaml;

use std::sync::OnceLock;

pub(crate) use self::cluster::{Cluster, Migration};
pub(crate) use self::process::Process;
pub(crate) use self::proxy::{Mode, Proxy};
pub(crate) use self::redis::RedisServer;
pub(crate) use self::stores::{Accelerators, Counting, redis_config, redis_store, watched};
pub(crate) use self::wait::{SOON, Stopwatch, eventually, eventually_async, eventually_some};

/// The one Redis that tests share because starting a server each is slow. Use keys of your own in it,
/// and start your own server to flush, freeze or kill one.
pub(crate) fn shared_redis() -> &'static RedisServer {
    static SHARED: OnceLock<RedisServer> = OnceLock::new();
    SHARED.get_or_init(RedisServer::start)
}

/// The one cluster of three primaries that tests share, under the same rules as [`shared_redis`].
pub(crate) fn shared_cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start(3, 0))
}
