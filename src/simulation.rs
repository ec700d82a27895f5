//! Simulation: runs strategies with the real limiter on the memory store, on a clock that the simulation moves.
//!
//! There is no server, no waiting, and no randomness except for the seed's, so the same calls have the same decisions
//! everywhere and always.

mod call_pattern;
mod costs;
mod logged;
mod replay;
mod run;
mod trace;
mod until;

pub use call_pattern::{CallPattern, PatternError};
pub use costs::{CostByName, read_units};
pub use logged::{
    EarlierLines, LoggedDecision, LoggedDecisions, LoggedOperation, ReplayRefused, TornLine,
    read_decision_log,
};
pub use replay::{ReplayError, ReplayResult, ReplayedAnswer, ReplayedDifference, ReplayedStrategy, replay};
pub use run::{CostSum, SimulatedStrategy, SimulationError, simulate};
pub use trace::{TraceError, read_trace};
pub use until::{UntilCallers, UntilDecider, UntilPattern};

use weir_units::Micros;

/// Start of simulations: 2024-01-01T00:00:00Z, a Monday and the start of every aligned window except for weeks.
pub const START: Micros = Micros(1_704_067_200_000_000);

/// The most calls of one simulation.
pub const MAX_CALLS: usize = 10_000_000;

/// Calls in the order of their times, and their subjects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedCalls {
    /// Resource and consumer of each subject, without duplicates.
    pub subjects: Vec<(String, String)>,
    /// The costs by name of calls, without duplicates.
    pub costs: Vec<Vec<CostByName>>,
    /// The calls.
    pub calls: Vec<SimulatedCall>,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedCall {
    /// Time since the start.
    pub at: Micros,
    /// Index in [`SimulatedCalls::subjects`].
    pub subject: usize,
    /// Cost.
    pub cost: u64,
    /// Index in [`SimulatedCalls::costs`].
    pub costs: usize,
}

impl SimulatedCalls {
    /// The costs by name of a call.
    #[must_use]
    pub fn costs_of(&self, call: &SimulatedCall) -> &[CostByName] {
        self.costs.get(call.costs).map_or(&[], Vec::as_slice)
    }
}
