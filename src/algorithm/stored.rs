//! States as whole numbers, which is how a store keeps them elsewhere than in this process.

use super::{Engine, State, bucket, sliding, window};
use crate::units::{CEILING, LATEST};

impl Engine {
    /// The state that `numbers` are, in the order in which the engine's twin in `lua/` stores them; `None`
    /// where they are not a state of this engine, or this kind of state is not kept so.
    #[must_use]
    pub fn restore(&self, numbers: &[u64]) -> Option<State> {
        let is_span = |span: u64| span > 0 && span <= CEILING;
        match (self, numbers) {
            (Self::Bucket(_), &[level, at, per_token, _]) => {
                (level <= CEILING && at <= LATEST.0 && per_token > 0)
                    .then_some(State::Bucket(bucket::State { level, at, per_token }))
            }
            (Self::Window(_), &[start, hits, span]) => {
                (start <= LATEST.0 && hits <= CEILING && is_span(span))
                    .then_some(State::Window(window::State { start, hits, span }))
            }
            (Self::Sliding(_), &[start, current, previous, span]) => (start <= LATEST.0
                && current <= sliding::CEILING
                && previous <= sliding::CEILING
                && is_span(span))
            .then(|| State::Sliding(Box::new(sliding::State { start, current, previous, span }))),
            _ => None,
        }
    }
}
