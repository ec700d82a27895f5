//! A running node: from sockets and a configuration to decisions.
//!
//! From the top down; each uses only those below it, and the crates below this one.
//!
//! * [`app`]: a configuration and sockets in, a running service out.
//! * [`watch`]: files that change while they serve. [`reload`]: the configuration in force, and the snapshots of it.
//!   [`overlay_target`]: the same, as a feature changes it.
//! * [`feature`]: the seam of what a node does beyond decisions. [`feature_parts`]: what it makes of the configuration.
//!   [`feature_pages`]: what it shows.
//! * [`server`], [`admin`]: sockets, threads, shutdown.
//! * [`access`]: who may do what: names of callers, rights, refusals.
//! * [`audit`]: a file with the calls that change something, and with refused ones.
//! * [`tls`]: TLS of the ports.
//! * [`service`]: wire ⇄ domain.
//! * [`limiter`]: the use case: strategy, store, failure policy, one event.
//! * [`settle`]: the end of a decision: failure policy and outcome. [`guard`]: who is refused before it.
//! * [`telemetry`], [`readiness`]: metrics and logs, health.
//!
//! Code generic over the store is instantiated here for the stores that [`app::run`] makes, so that programs and
//! tests only link it.

pub mod access;
pub mod admin;
pub mod app;
pub mod audit;
pub mod card;
mod client_network;
pub mod current_method;
pub mod feature;
pub mod feature_pages;
pub mod feature_parts;
pub mod guard;
mod json_line;
mod known_methods;
mod label;
pub mod limiter;
mod memory;
pub mod overlay_target;
pub mod owned_thread;
pub mod proto_json;
pub mod readiness;
pub mod reload;
pub mod server;
pub mod service;
pub mod settle;
pub mod telemetry;
pub mod tls;
pub mod watch;
