//! Settings of envoyproxy/ratelimit, which is configured by variables: what they mean for Weir.
//!
//! ```text
//!   environment ── given ── typed values ── plan ──┬─ ConfigOverrides   settings that Weir has too
//!     variables: the table      │      store       ├─ RatelimitPorts    what is served beside gRPC
//!     values: Go's notation     └─ every mistake   └─ lines for --explain and the log
//! ```
//!
//! This module does not read the environment: the command line does.

mod differences;
mod extra_tags;
mod given;
mod mapped;
mod mapper;
mod ports;
mod ratelimit_plan;
mod redis_user;
mod store;
mod values;
mod variables;
mod xds;

pub use self::differences::RATELIMIT_DIFFERENCES;
pub use self::given::{RatelimitErrors, RatelimitGiven, RatelimitLine};
pub use self::mapper::REFERENCE_FAMILIES;
pub use self::ratelimit_plan::{RatelimitLog, RatelimitPlan, RatelimitSurroundings};
pub use self::variables::{RatelimitVariable, VariableEffect, ratelimit_variables};
