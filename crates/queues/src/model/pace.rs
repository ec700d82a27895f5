//! Pace of deliveries: a bucket of burst 1.

use weir_units::Micros;

/// A rate of evenly spaced items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePace {
    /// Items per period, at least 1.
    pub count: u64,
    /// The period, at least 1 µs.
    pub period: Micros,
}

/// Recent deliveries as a bucket. An item adds the period, and `count` drains in each microsecond: nothing is
/// rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PaceState {
    level: u64,
    at: Micros,
}

impl PaceState {
    /// The state at `now`.
    pub(super) fn drained(self, pace: QueuePace, now: Micros) -> Self {
        // It may be of another rate, from before a reload.
        let level = self.level.min(pace.period.0);
        let (count, since) = (pace.count.max(1), now.0.saturating_sub(self.at.0));
        let drained = if since >= level.div_ceil(count) { level } else { since.saturating_mul(count) };
        Self { level: level.saturating_sub(drained), at: now }
    }

    /// Time until the next item may be delivered.
    pub(super) fn wait(self, pace: QueuePace) -> Micros {
        Micros(self.level.div_ceil(pace.count.max(1)))
    }

    /// True if the clock has stepped back since it was stored.
    pub(super) fn is_after(self, now: Micros) -> bool {
        now < self.at
    }

    /// Charges a delivery, when the wait is 0.
    pub(super) fn charge(&mut self, pace: QueuePace) {
        self.level = pace.period.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_evenly_and_nothing_is_rounded() {
        let pace = QueuePace { count: 3, period: Micros(1_000_000) };
        let (mut state, mut now) = (PaceState::default(), Micros(7));
        for number in 0..3_000 {
            state = state.drained(pace, now);
            assert_eq!(state.wait(pace), Micros(0), "item {number}");
            state.charge(pace);
            let wait = state.wait(pace);
            assert_eq!(state.drained(pace, Micros(now.0 + wait.0 - 1)).wait(pace), Micros(1));
            now = Micros(now.0 + wait.0);
        }
        // Each waits for a third of a second, rounded up to the microsecond.
        assert_eq!(now, Micros(7 + 3_000 * 333_334));
    }
}
