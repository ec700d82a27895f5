//! Real servers for the tests and benches: Redis, a Redis Cluster, sentinels, Envoy, and a faulty network in
//! front of them. Also low-level clients for tests (HTTP/2 frames, HTTP/1, damaged messages), and Weir's own stores.
//!
//! Nothing here outlives the test binary, however that ends: see [`Process`] for the processes and [`scratch`]
//! for the files. So a test may start what it needs, break it, and walk away.
//!
//! It does not know the service: a server in the test's own process is up to the tests of the service.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // helpers wait in real time, and look up programs in the real PATH

pub mod certificates;
mod chromium;
pub mod clients;
mod cluster;
pub mod damage;
pub mod envoy;
pub mod frames;
pub mod helm;
pub mod http;
pub mod jwt;
pub mod metrics;
pub mod ports;
mod process;
mod prometheus;
mod proxy;
mod redis;
pub mod rights;
pub mod rules;
pub mod scratch;
pub mod script_names;
pub mod sentinels;
pub mod stores;
pub mod usage;
mod wait;
pub mod yaml;

use std::sync::OnceLock;
use std::time::Duration;

pub use self::chromium::Chromium;
pub use self::cluster::{Cluster, Migration};
pub use self::process::Process;
pub use self::prometheus::Prometheus;
pub use self::proxy::{Proxy, ProxyMode};
pub use self::redis::{RedisBuilder, RedisServer};
pub use self::stores::{Accelerators, Counting, DecideOne, redis_config, redis_store, watched};
pub use self::wait::{SOON, Stopwatch, eventually, eventually_async, eventually_some};

/// Writes a test for each engine of a feature, which calls `$run` with the engine and the clock that it follows. The engines
/// are `pure`, `memory`, `redis` and `cluster` of `$world`, whose clocks begin at its `START`.
#[macro_export]
macro_rules! on_every_engine {
    ($world:ident, $run:ident) => {
        #[tokio::test]
        async fn pure() {
            let clock = ::weir_time::clock::ManualClock::at(::weir_units::Micros($world::START));
            $run(&$world::pure(&clock), &clock).await;
        }

        #[tokio::test]
        async fn memory() {
            let clock = ::weir_time::clock::ManualClock::at(::weir_units::Micros($world::START));
            $run(&$world::memory(&clock), &clock).await;
        }

        #[tokio::test]
        async fn redis() {
            let clock = ::weir_time::clock::ManualClock::at(::weir_units::Micros($world::START));
            $run(&$world::redis(&clock).await, &clock).await;
        }

        #[tokio::test]
        async fn cluster() {
            let clock = ::weir_time::clock::ManualClock::at(::weir_units::Micros($world::START));
            $run(&$world::cluster(&clock).await, &clock).await;
        }
    };
}

/// Returns true if `make test-long` has less than half an hour: then tests that only gain certainty with time run for less.
/// The variable is none of Weir's: the programs under test take those for settings, and end where one is nearly the name of another.
pub fn is_short() -> bool {
    std::env::var("LONG_TESTS").is_ok_and(|length| length == "short")
}

/// Returns the seconds that a variable sets for a test, or the default.
pub fn seconds_of(variable: &str, default: u64) -> Duration {
    Duration::from_secs(std::env::var(variable).map_or(default, |text| text.parse().expect("seconds")))
}

/// The one Redis that tests share because starting a server each is slow. Use keys of your own in it,
/// and start your own server to flush, freeze or kill one.
pub fn shared_redis() -> &'static RedisServer {
    static SHARED: OnceLock<RedisServer> = OnceLock::new();
    SHARED.get_or_init(RedisServer::start)
}

/// The one cluster of three primaries that tests share, under the same rules as [`shared_redis`].
pub fn shared_cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start(3, 0))
}
