//! Simulations for tests. Nothing here is part of the program.
//!
//! All simulations are deterministic: the same calls in the same order get the same replies.

pub mod redis;
