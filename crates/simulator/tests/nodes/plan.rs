//! The choices of a seed before anything happens.

use crate::random::SeededRandom;

/// A mistake that the checks must find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlantedFault {
    /// A piece of every script that has it is another one.
    Script { from: String, to: String },
    /// Nodes send some of their calls twice.
    RepeatedCalls,
}

/// The plan of a run.
#[derive(Debug, Clone)]
pub struct SimulationPlan {
    /// The seed.
    pub seed: u64,
    /// Nodes of Weir.
    pub nodes: usize,
    /// Servers of Redis: one, or a cluster.
    pub servers: usize,
    /// True if anything goes wrong.
    pub has_faults: bool,
    /// True if servers lose writes in failovers, and if their clocks step: the bounds are larger then.
    pub has_exceptions: bool,
    /// A mistake, in tests of the checks.
    pub planted: Option<PlantedFault>,
}

impl SimulationPlan {
    /// The plan of a seed: in one of eight runs nothing goes wrong.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed ^ 0x5eed);
        Self {
            seed,
            nodes: random.between(2, 4) as usize,
            servers: if random.one_in(3) { 3 } else { 1 },
            has_faults: !random.one_in(8),
            has_exceptions: random.one_in(2),
            planted: None,
        }
    }

    /// The same with a mistake.
    #[must_use]
    pub fn with(self, planted: PlantedFault) -> Self {
        Self { planted: Some(planted), ..self }
    }
}
