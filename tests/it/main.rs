//! One integration binary; a module per topic.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod access;
mod architecture;
mod batch;
mod bounds;
mod cli;
mod concurrency;
mod config;
mod denials;
mod differential;
mod explain;
mod failure;
mod keys;
mod memory;
mod metrics;
mod outage;
mod properties;
mod server_bounds;
mod service;
mod shutdown;
mod support;
mod ttl;
mod undo;
mod vectors;
