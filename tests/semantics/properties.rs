//! The promises of every limit, on random limits and random traces of the pure driver, and that the memory store
//! answers as the pure driver does.
//!
//! A case that fails is shrunk and kept beside its source, in `*.proptest-regressions`.

mod answers;
mod bounds;
mod changed;
mod extremes;
pub mod machine;
pub(crate) mod memory;
mod reservations;
mod shadow;
mod untouched;

pub(crate) use crate::support::random;
