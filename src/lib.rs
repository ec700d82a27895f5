//! Weir: exact rate-limit decisions.
//!
//! The floors, from the ground up; each uses only those below it.
//!
//! * [`units`], [`clock`]: integer time and cost; the one place that reads a clock.
//! * [`algorithm`]: what every limit means, as pure arithmetic.
//! * [`strategy`]: which limits apply. [`key`]: the names of their states.
//! * [`store`]: where state lives; one seam, two engines.
//! * [`config`]: everything a running service is told, parsed once.

pub mod algorithm;
pub mod clock;
pub mod config;
pub mod key;
pub mod store;
pub mod strategy;
pub mod units;
