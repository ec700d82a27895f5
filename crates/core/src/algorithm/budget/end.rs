//! End of a hold's part.

use super::{BudgetLimit, HoldBounds};
use crate::algorithm::{Engine, Grid, State};

impl BudgetLimit {
    /// The end of a part that is made at `at`, of a hold that ends at `hold_end`.
    pub(super) fn end(
        &self,
        state: Option<&State>,
        (at, phase): (u64, u64),
        bounds: &HoldBounds,
        hold_end: u64,
    ) -> u64 {
        self.stop(state, (at, phase), bounds).map_or(hold_end, |stop| hold_end.min(stop))
    }

    /// Returns the time at which a charge made at `at` stops counting. A bucket has none, because it drains.
    fn stop(&self, state: Option<&State>, (at, phase): (u64, u64), bounds: &HoldBounds) -> Option<u64> {
        let reading = self.algorithm.read(state, at, phase);
        let stop = match self.algorithm.engine() {
            Engine::Window(window) if window.grid != Grid::Anchored || reading.level > 0 => {
                return Some(reading.origin + reading.extra);
            }
            Engine::Window(window) => at + window.span,
            Engine::Log(log) => at + log.span,
            Engine::Sliding(sliding) => at - at % sliding.span + 2 * sliding.span,
            Engine::Slots(slots) => slots.end(slots.part(at)),
            Engine::Bucket(_) | Engine::Interval(_) | Engine::WarmUp(_) => return None,
        };
        Some(bounds.round_up(stop))
    }
}
