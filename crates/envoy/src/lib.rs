//! Envoy's rate limits: the service of Envoy's filters, its files, a control plane, and the place of envoyproxy/ratelimit.
//!
//! ```text
//!   service ── messages ⇄ descriptors ── limiter ── finds the rules, asks the store of decisions ── metrics
//!                                           │
//!       files, xds ── domains ── the part of the snapshot;   ratelimit ── the ports and variables of the reference
//! ```
//!
//! `settings` is the section `envoy` of the configuration; `overlay` changes how rules count. `feature` wires them.

mod feature;
pub mod files;
pub mod limiter;
pub mod metrics;
pub mod overlay;
pub mod ratelimit;
pub mod rules;
pub mod service;
pub mod settings;
pub mod xds;

pub use self::feature::{EnvoyFeature, RunningEnvoy};
pub use self::settings::ENVOY;
