//! What the tests simulate. Nothing here is part of the program.
//!
//! Everything is deterministic: the same calls in the same order get the same replies.

pub mod redis;
