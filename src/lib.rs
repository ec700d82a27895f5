//! Weir: exact rate-limit decisions. This package is the program: arguments, environment, commands, exit codes.
//!
//! The crates, from the ground up; each uses only those below it.
//!
//! * `weir-units`: integer time and cost. `weir-time`: the only reader of clocks.
//! * `weir-core`: what every limit means, as pure arithmetic; which limits apply; the names of their states.
//! * `weir-config`: the configuration, parsed once.
//! * `weir-store`: where state lives; one interface, two engines.
//! * `weir-proto`: the wire's types. `weir-grpc`: gRPC over HTTP/2, from bytes to bytes.
//! * `weir-node`: a running node, from sockets and a configuration to decisions.
//! * `weir-control`, `weir-envoy`, `weir-http`, `weir-leases`, `weir-queues`, `weir-usage`: the features, what a node does beyond
//!   decisions; [`features`] lists them.
//! * `weir-load`: the other side. It puts load on a server, and asks one question.
//! * `weir`: [`simulation`], calls in and decisions out, on a clock that it moves; [`cli`], the commands.

#[cfg(feature = "leases")]
pub use weir_leases as leases;

pub mod cli;
pub mod features;
pub mod simulation;
