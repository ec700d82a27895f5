//! Envoy's rate limits: the service of Envoy's filters, its files, a control plane, and the place of envoyproxy/ratelimit.
//!
//! ```text
//!   service ── messages ⇄ descriptors ── limiter ── finds the rules, asks the store of decisions ── metrics
//!                                           │
//!       files, xds ── domains ── the part of the snapshot;   ratelimit ── the ports and variables of the reference
//! ```
//!
//! `feature` wires them. What a rule is (`weir_core::envoy`) and the section `envoy` of the configuration are in the trunk.

mod feature;
pub mod files;
pub mod limiter;
pub mod metrics;
pub mod ratelimit;
pub mod service;
pub mod xds;

pub use self::feature::{EnvoyFeature, RunningEnvoy};
pub use self::service::ENVOY;
