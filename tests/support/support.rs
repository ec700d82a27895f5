//! The ground of all tests: real servers (see `weir_testing`), a service in this process, random limits, and the
//! tables of rows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // helpers wait in real time
#![allow(dead_code)] // a helper is complete, whether or not every part of it has a user today

#[cfg(feature = "envoy")]
pub(crate) mod ads;
#[cfg(feature = "envoy")]
pub(crate) mod as_messages;
pub(crate) mod command;
#[cfg(feature = "control")]
pub(crate) mod control;
pub(crate) mod faulty_nodes;
pub(crate) mod grpc;
#[cfg(feature = "leases")]
pub(crate) mod leases;
pub(crate) mod other_server;
#[cfg(feature = "queues")]
pub(crate) mod queues;
pub(crate) mod random;
pub(crate) mod requests;
pub(crate) mod server;
#[cfg(feature = "usage")]
pub(crate) mod usage;
pub(crate) mod vectors;

pub(crate) use weir_testing::*;
