//! Clocks and deadlines.
//!
//! This is the only crate that reads a clock. All others get the time from here, or as an argument. It knows
//! nothing of limits, stores or connections.

pub mod alarm;
pub mod clock;
pub mod deadlines;
