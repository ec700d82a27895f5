//! What Weir decides, as pure functions of their arguments.
//!
//! * [`algorithm`]: what every limit means.
//! * [`strategy`]: which limits apply.
//! * [`key`]: the names of their states.
//! * [`lease`]: permits that callers hold for a time, and limits that follow what the holders report.
//! * [`queue`]: work that waits for workers.
//! * [`envoy`]: which rule of Envoy's files a descriptor matches.
//!
//! Nothing here reads a clock, holds a lock, does I/O, or knows where states are kept and how questions arrive.

pub mod algorithm;
pub mod envoy;
pub mod key;
pub mod lease;
pub mod queue;
pub mod strategy;
