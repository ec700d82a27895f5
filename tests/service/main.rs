//! The server as callers meet it: HTTP/2, gRPC, Envoy, clients in other languages.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]
#![allow(clippy::disallowed_methods)] // tests wait in real time and read the environment

mod batch_room;
mod clients;
#[cfg(feature = "envoy")]
mod envoy;
mod h2spec;
mod http2;
#[cfg(feature = "http")]
mod http_examples;
#[cfg(feature = "leases")]
mod lease_example;
#[cfg(feature = "queues")]
mod queue_example;
mod server_bounds;
mod shutdown;
#[path = "../support/support.rs"]
mod support;
mod tls;
mod together;
mod transports;
mod turns;
mod unix_socket;
mod wire;
