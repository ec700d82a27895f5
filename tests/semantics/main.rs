//! The meaning of decisions: the same on every store, through the pure driver and through the service.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod access;
mod approximate;
mod batch;
mod bounds;
mod budgets;
mod changed;
mod coalesce;
mod count;
mod denials;
mod differential;
mod documented;
mod http_headers;
mod inline;
mod keys;
mod local;
mod long_concurrency;
mod long_redis_6;
mod long_valkey;
mod long_worst_cost;
mod memory;
mod own_store;
mod properties;
mod rights;
mod service;
mod shadow;
mod shaping;
mod simulated_redis;
mod simulation;
mod sparse;
mod stream;
#[path = "../support/support.rs"]
mod support;
mod ttl;
mod undo;
#[cfg(all(feature = "leases", feature = "queues"))]
mod upgrade;
mod vectors;
