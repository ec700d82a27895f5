//! Decisions of Weir, as pure functions of their arguments.
//!
//! * [`algorithm`]: rate limits.
//! * [`strategy`]: resolution of a request into limits.
//! * [`key`]: names of states.
//! * [`approximate`]: counting on the nodes, within a bound.
//! * [`near`]: names that look like a given one, for errors.
//! * [`checksum`]: a checksum that every node and release computes alike.
//!
//! Nothing here reads a clock, holds a lock, does I/O, or depends on a store or a transport.

pub mod algorithm;
pub mod approximate;
pub mod checksum;
pub mod key;
pub mod near;
pub mod strategy;
