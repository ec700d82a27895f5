//! Tests of leases: on each store, and through a service in this process.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod leases;
mod long_redis_6;
mod long_valkey;
mod simulated_redis;
mod support;
