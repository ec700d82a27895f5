//! Leases: permits that holders have until they give them back, or until their time is over.
//!
//! * [`ConcurrencyRule`](weir_core::strategy::ConcurrencyRule): how many permits there are, and for how long.
//! * [`LeaseSet`]: who holds which, as a pure state machine. `lua/leases/call.lua` is its twin on Redis.
//! * [`AdaptiveRule`](weir_core::strategy::AdaptiveRule): a limit that follows what its holders report: AIMD, Vegas, Gradient2.
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
mod sample;
mod sampling;
mod vegas;

pub use answer::{LeaseAnswer, LeaseOp, LeaseOutcome, LeaseRefusal, WorkOutcome};
pub use held::{LeaseCall, LeaseSet};
pub use listed::{HeldLease, LeaseCursor, LeasePage, MAX_LEASE_PAGE};

/// The longest id of a lease, in bytes.
pub const MAX_LEASE_ID: usize = 128;

/// Number of leases that are read to find when a refused call would pass.
pub const BOUND_LOOKS: usize = 100;
