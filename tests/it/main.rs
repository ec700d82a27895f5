//! One integration binary; a module per topic.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod differential;
mod keys;
mod memory;
mod properties;
mod support;
mod ttl;
mod vectors;
