//! Weir: exact rate-limit decisions.
//!
//! The floors, from the ground up; each uses only those below it. The lower ones are crates.
//!
//! * `weir-units` ([`units`]): integer time and cost. `weir-time` ([`clock`]): the only reader of clocks.
//! * `weir-core`: [`algorithm`], what every limit means, as pure arithmetic; [`strategy`], which limits apply;
//!   [`key`], the names of their states; [`envoy`], which rule of Envoy's files a descriptor matches.
//! * `weir-store` ([`store`]): where state lives; one interface, two engines. [`tls`]: certificates for Redis.
//! * `weir-proto` ([`proto`]): the wire's types. [`weir_grpc`]: gRPC over HTTP/2, from bytes to bytes.
//! * [`config`]: the configuration, parsed once.
//! * [`telemetry`], [`readiness`]: what operators see.
//! * [`limiter`]: the use case: strategy, store, failure policy, one event.
//! * [`leases`]: the use case of permits that callers hold for a time.
//! * [`queues`]: the use case of work that waits for workers.
//! * [`usage`]: what was decided, by time, and the consumers that call most.
//! * [`service`]: wire ⇄ domain.
//! * [`simulation`]: calls in, decisions out, on a clock that it moves.
//! * [`server`], [`admin`]: sockets, threads, shutdown.
//! * `weir-load` ([`load`], [`client`]): the other side. It puts load on a server, and asks one question.
//! * [`app`]: a configuration and sockets in, a running service out.

pub mod admin;
pub mod app;
pub mod leases;
pub mod limiter;
pub mod queues;
pub mod readiness;
pub mod server;
pub mod service;
pub mod simulation;
pub mod telemetry;
pub mod usage;
pub mod watch;

pub use weir_core::{algorithm, envoy, key, lease, queue, strategy};
pub use weir_load as load;
pub use weir_load::client;
pub use weir_proto as proto;
pub use weir_store as store;
pub use weir_time::clock;
use weir_time::deadlines;
pub use weir_units as units;
