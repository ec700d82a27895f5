//! What strategies would decide: the real limiter on the memory store, on a clock that the simulation moves.
//!
//! There is no server, no waiting and no randomness but that of the seed, so the same calls have the same decisions,
//! on every machine and at every time.

mod call_pattern;
mod logged;
mod replay;
mod run;
mod trace;

pub use call_pattern::{CallPattern, PatternError};
pub use logged::{LoggedDecision, LoggedDecisions, LoggedOperation, ReplayRefused, read_decision_log};
pub use replay::{ReplayError, ReplayResult, ReplayedAnswer, ReplayedDifference, ReplayedStrategy, replay};
pub use run::{SimulatedStrategy, SimulationError, simulate};
pub use trace::{TraceError, read_trace};

use weir_units::Micros;

/// When simulations begin: 2024-01-01T00:00:00Z, a Monday and the start of every window that is aligned to the clock,
/// but for weeks.
pub const START: Micros = Micros(1_704_067_200_000_000);

/// The most calls of one simulation.
pub const MAX_CALLS: usize = 10_000_000;

/// Calls in the order of their times, and who makes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedCalls {
    /// Each resource and consumer, once.
    pub subjects: Vec<(String, String)>,
    /// The calls.
    pub calls: Vec<SimulatedCall>,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedCall {
    /// When it is made, counted from the start.
    pub at: Micros,
    /// Whose it is: a place in [`SimulatedCalls::subjects`].
    pub subject: usize,
    /// What it costs.
    pub cost: u64,
}
