//! What a decision is made on, and where its answer goes: the driver's two seams.

use super::{LimitVerdict, State, Verdict};
use crate::units::Micros;

/// Where the states of one decision's limits are kept while it is made.
pub trait Cells {
    /// Why a new state could not be kept.
    type Full;

    /// The state of limit `index`, if there is one.
    fn get(&self, index: usize) -> Option<&State>;

    /// Where the key of limit `index` stands in a spread window: any number below 2^52, always the same.
    /// Asked only where [`Algorithm::is_spread`](super::Algorithm::is_spread).
    fn phase(&self, index: usize) -> u64;

    /// Makes sure that `count` states that are absent can be kept, and that those that are there can
    /// grow; called before the first write of a decision that charges.
    fn reserve(&mut self, count: usize) -> Result<(), Self::Full>;

    /// Changes the state of limit `index`; `change` says how long the result matters.
    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept);
}

impl<C: Cells> Cells for &mut C {
    type Full = C::Full;

    fn get(&self, index: usize) -> Option<&State> {
        (**self).get(index)
    }

    fn phase(&self, index: usize) -> u64 {
        (**self).phase(index)
    }

    fn reserve(&mut self, count: usize) -> Result<(), Self::Full> {
        (**self).reserve(count)
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        (**self).put(index, change);
    }
}

/// What a store needs to know of a state it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// From now until the state is as good as absent, by the store's clock.
    pub lasts: Micros,
    /// Whether nothing remains: dropping such a state would let its holder start anew.
    pub exhausted: bool,
}

/// Where the answer to a decision goes.
pub trait Told {
    /// One limit says this; called for each, in order.
    fn limit(&mut self, verdict: LimitVerdict);

    /// All together come to this; called last.
    fn all(&mut self, verdict: Verdict);
}
