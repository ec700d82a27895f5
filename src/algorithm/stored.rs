//! States as whole numbers, which is how a store keeps them elsewhere than in this process.

use super::{Engine, State, bucket, sliding, window};
use crate::units::{CEILING, LATEST};

impl Engine {
    /// The state that `numbers` begin with, in the order in which the engine's twin in `lua/` stores them;
    /// `None` where they are not a state of this engine, or its states are not kept so.
    pub fn restore(&self, numbers: &mut impl Iterator<Item = u64>) -> Option<State> {
        let mut next = |most: u64| numbers.next().filter(|number| *number <= most);
        match self {
            Self::Bucket(_) => {
                let (level, at, per_token) = (next(CEILING)?, next(LATEST.0)?, next(CEILING)?);
                // When its key goes, which is the script's own affair.
                let _ = numbers.next()?;
                (per_token > 0).then_some(State::Bucket(bucket::State { level, at, per_token }))
            }
            Self::Window(_) => {
                let (start, hits, span) = (next(LATEST.0)?, next(CEILING)?, next(CEILING)?);
                (span > 0).then_some(State::Window(window::State { start, hits, span }))
            }
            Self::Sliding(_) => {
                let (start, current) = (next(LATEST.0)?, next(sliding::CEILING)?);
                let (previous, span) = (next(sliding::CEILING)?, next(CEILING)?);
                (span > 0)
                    .then(|| State::Sliding(Box::new(sliding::State { start, current, previous, span })))
            }
            Self::Interval(_) | Self::Log(_) | Self::Slots(_) => None,
        }
    }
}
