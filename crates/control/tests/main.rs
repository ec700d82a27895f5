//! Tests of live control: its records and bans on each engine, and a service in this process whose limits change.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod control;
mod long_control;
mod long_redis_6;
mod long_valkey;
mod service;
mod simulated_redis;
mod support;
