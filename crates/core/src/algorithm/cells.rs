//! The driver's two seams: states in, verdicts out.

use std::convert::Infallible;

use super::{LimitVerdict, State, Verdict};
use weir_units::Micros;

/// Access to the states of one decision's limits.
pub trait Cells {
    /// The error of a store without room.
    type Full;

    /// The state of limit `index`, if there is one.
    fn get(&self, index: usize) -> Option<&State>;

    /// Phase of the key of limit `index` in a spread window: any constant number below 2^52. Called only if
    /// [`Algorithm::is_spread`](super::Algorithm::is_spread).
    fn phase(&self, index: usize) -> u64;

    /// Reserves room for `count` new states and for the growth of existing ones; called before the first write of a
    /// decision that charges.
    fn reserve(&mut self, count: usize) -> Result<(), Self::Full>;

    /// Changes the state of limit `index`; `change` returns the expiry.
    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept);
}

/// A single limit's state outside of any store.
impl Cells for Option<State> {
    type Full = Infallible;

    fn get(&self, _: usize) -> Option<&State> {
        self.as_ref()
    }

    fn phase(&self, _: usize) -> u64 {
        0
    }

    fn reserve(&mut self, _: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn put(&mut self, _: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        change(self);
    }
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

/// Expiry of a state, for the store that keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Time until the state can be dropped, by the store's clock.
    pub lasts: Micros,
    /// True if nothing remains: dropping such a state would make its limit full again.
    pub exhausted: bool,
}

/// Receiver of a decision's answer.
pub trait VerdictSink {
    /// Receives one limit's verdict; called for each, in order.
    fn limit(&mut self, verdict: LimitVerdict);

    /// Receives the verdict over all limits; called last.
    fn all(&mut self, verdict: Verdict);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::algorithm::{Algorithm, Op, decide};

    /// One new state, and whether the cell is still held. There is room, or there is not.
    struct Held<'h> {
        held: &'h Cell<bool>,
        has_room: bool,
        state: Option<State>,
    }

    impl Cells for Held<'_> {
        type Full = ();

        fn get(&self, _: usize) -> Option<&State> {
            self.state.as_ref()
        }

        fn phase(&self, _: usize) -> u64 {
            0
        }

        fn reserve(&mut self, _: usize) -> Result<(), ()> {
            if self.has_room { Ok(()) } else { Err(()) }
        }

        fn put(&mut self, _: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
            change(&mut self.state);
        }
    }

    impl Drop for Held<'_> {
        fn drop(&mut self) {
            self.held.set(false);
        }
    }

    /// For each part of the answer whether the cells were held then.
    struct HeldAtAnswers<'h> {
        held: &'h Cell<bool>,
        each: Vec<bool>,
    }

    impl VerdictSink for HeldAtAnswers<'_> {
        fn limit(&mut self, _: LimitVerdict) {
            self.each.push(self.held.get());
        }

        fn all(&mut self, _: Verdict) {
            self.each.push(self.held.get());
        }
    }

    /// A lock that the cells hold must not be held while the answer is made. If there is no room, there is no answer.
    #[test]
    fn cells_are_released_before_any_answer() {
        let algorithm = Algorithm::uniform(Micros::from_secs(1)).unwrap();
        for (op, has_room, expected) in [
            (Op::Charge, true, &[false, false][..]),
            (Op::Peek, true, &[false, false]),
            (Op::Peek, false, &[false, false]),
            (Op::Charge, false, &[]),
        ] {
            let held = Cell::new(true);
            let cells = Held { held: &held, has_room, state: None };
            let mut sink = HeldAtAnswers { held: &held, each: Vec::new() };
            let decided = decide(std::slice::from_ref(&algorithm), cells, op, 1, Micros::ZERO, &mut sink);
            assert_eq!(decided.is_ok(), !expected.is_empty(), "{op:?}");
            assert_eq!(sink.each, expected, "{op:?}");
            assert!(!held.get());
        }
    }
}
