//! Leases: permits that holders have until they give them back, or until their time is over.
//!
//! * [`ConcurrencyRule`]: how many permits there are, and for how long.
//! * [`LeaseSet`]: who holds which, as a pure state machine. `lua/lease.lua` is its twin on Redis.
//! * [`AdaptiveRule`]: a limit that follows what its holders report: AIMD, Vegas, Gradient2.
//!
//! ```text
//!   admitted  ⇔ all + weight ≤ limit   or, with partitions,   own + weight ≤ max(1, ⌈limit · share⌉)
//!   a lease ends at acquire + ttl exactly, or when it is released; renewing moves its end
//! ```
//!
//! Holders choose the ids of their leases, so a call whose answer was lost can be made again.

mod aimd;
mod answer;
mod controller;
mod gradient2;
mod held;
mod listed;
mod page;
mod partitions;
mod rule;
mod sample;
mod sampling;
mod vegas;

pub use aimd::AimdRule;
pub use answer::{LeaseAnswer, LeaseOp, LeaseOutcome, LeaseRefusal, WorkOutcome};
pub use controller::{AdaptiveRule, ControllerRule};
pub use gradient2::Gradient2Rule;
pub use held::{LeaseCall, LeaseSet};
pub use listed::{HeldLease, LeaseCursor, LeasePage, MAX_LEASE_PAGE};
pub use partitions::{MAX_PARTITIONS, Partition, Partitions};
pub use rule::{ConcurrencyError, ConcurrencyNumbers, ConcurrencyRule, LimitSource};
pub use sample::LimitRange;
pub use sampling::{SHORTEST_RTT, SamplingRule};
pub use vegas::{ProbeRule, VegasRule};

use weir_units::Micros;

/// The most leases that a key may have.
pub const MAX_LEASES: usize = 10_000;

/// The longest id of a lease, in bytes.
pub const MAX_LEASE_ID: usize = 128;

/// The longest time that a configuration may let a lease have without being renewed.
pub const LONGEST_TTL: Micros = Micros::from_secs(7 * 24 * 3600);

/// The highest limit that a controller may reach.
pub const MAX_ADAPTIVE_LIMIT: u64 = 1_000_000_000;

/// How many leases are looked at to find when a refused call would pass.
pub const BOUND_LOOKS: usize = 100;
