//! Weir: exact rate-limit decisions.
//!
//! The floors, from the ground up; each uses only those below it.
//!
//! * [`units`], [`clock`]: integer time and cost; the one place that reads a clock (crates of their own).
//! * [`algorithm`]: what every limit means, as pure arithmetic.
//! * [`strategy`]: which limits apply. [`key`]: the names of their states.
//! * [`envoy`]: which rule of Envoy's files a descriptor matches. These four are the crate `weir-core`.
//! * [`config`]: everything a running service is told, parsed once.
//! * [`store`]: where state lives; one seam, two engines.
//! * [`telemetry`], [`readiness`]: what operators see. [`tls`]: certificates of what we dial.
//! * [`limiter`]: the use case: strategy, store, failure policy, one event.
//! * [`service`]: wire ⇄ domain. [`proto`]: the wire's types (a crate of its own).
//! * [`weir_grpc`]: gRPC over HTTP/2, from bytes to bytes; knows nothing of the above.
//! * [`server`], [`admin`]: sockets, threads, shutdown. [`client`]: the other side.
//! * [`load`]: puts load on a server and measures how it answers.
//! * [`app`]: a configuration and sockets in, a running service out.

pub mod admin;
pub mod app;
pub mod client;
pub mod config;
pub mod limiter;
pub mod load;
pub mod readiness;
pub mod server;
pub mod service;
pub mod telemetry;

pub use weir_core::{algorithm, envoy, key, strategy};
pub use weir_proto as proto;
pub use weir_store as store;
pub use weir_store::tls;
pub use weir_time::clock;
use weir_time::deadlines;
pub use weir_units as units;
