//! One integration binary; a module per topic.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod access;
mod architecture;
mod batch;
mod bounds;
mod changed;
mod check;
mod cli;
mod clients;
mod coalesce;
mod concurrency;
mod config;
mod denials;
mod deploy;
mod differential;
mod documented;
mod envoy;
mod envoy_config;
mod explain;
mod failure;
mod first_minutes;
mod http2;
mod keys;
mod load;
mod logs;
mod memory;
mod metrics;
mod open_files;
mod outage;
mod properties;
mod rls;
mod server_bounds;
mod service;
mod shutdown;
mod soak;
mod stream;
mod support;
mod together;
mod transports;
mod ttl;
mod undo;
mod unix_socket;
mod valkey;
mod vectors;
mod wire;
