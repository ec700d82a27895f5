//! Gathering: decisions that find no other one in flight wait a moment for more, if `store.redis.gather` is set.
//!
//! A script call of one decision costs Redis mostly what it takes to wake it, which a call of two pays once.

use std::time::{Duration, Instant};

use crate::redis::script_call::CallTime;

/// Number of decisions that do not wait for more: in a larger call each costs Redis as much.
const ENOUGH: usize = 16;

/// The wait of the decisions of one link.
#[derive(Debug)]
pub(super) struct Gather {
    /// Upper bound of the wait of a decision; zero if none waits.
    longest: Duration,
    /// Time at which the decisions that wait leave.
    until: Option<Instant>,
}

impl Gather {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, until: None }
    }

    /// True while decisions wait for others.
    pub(super) fn is_waiting(&self) -> bool {
        self.until.is_some()
    }

    /// Decides whether decisions that came at these times wait. Returns when they leave.
    pub(super) fn begin(
        &mut self,
        times: impl ExactSizeIterator<Item = CallTime> + Clone,
        now: Instant,
    ) -> Option<Instant> {
        self.until = None;
        if self.longest.is_zero() || times.len() >= ENOUGH {
            return None;
        }
        let until = times.clone().map(|time| time.begun).min()? + self.longest;
        if until > now && times.clone().all(|time| time.deadline > until) {
            self.until = Some(until);
        }
        self.until
    }

    /// A decision came and is the last of `waiting`. It ends the wait if it has no time for it, or makes it enough.
    pub(super) fn record(&mut self, came: CallTime, waiting: usize) {
        self.until = self.until.filter(|until| came.deadline > *until && waiting < ENOUGH);
    }

    pub(super) fn end(&mut self) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_time::clock::monotonic;

    const LONGEST: Duration = Duration::from_micros(500);

    fn after(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// The times of decisions that came, and whose deadlines are, so long after `origin`.
    fn times(origin: Instant, times: &[(u64, u64)]) -> Vec<CallTime> {
        let time = |&(begun, deadline)| CallTime {
            begun: origin + after(begun),
            deadline: origin + after(deadline),
        };
        times.iter().map(time).collect()
    }

    fn begin(gather: &mut Gather, origin: Instant, came: &[(u64, u64)], now: u64) -> Option<Duration> {
        let came = times(origin, came);
        gather.begin(came.iter().copied(), origin + after(now)).map(|until| until - origin)
    }

    #[test]
    fn a_decision_waits_from_its_arrival_unless_its_deadline_passes_or_others_are_enough() {
        let (origin, mut gather) = (monotonic(), Gather::new(LONGEST));
        assert_eq!(begin(&mut gather, origin, &[(0, 5_000)], 10), Some(after(500)));
        assert_eq!(
            begin(&mut gather, origin, &[(100, 5_000), (40, 5_000)], 150),
            Some(after(540)),
            "the oldest counts"
        );
        assert_eq!(begin(&mut gather, origin, &[(0, 500)], 10), None, "its deadline passes meanwhile");
        assert_eq!(begin(&mut gather, origin, &[(0, 501)], 10), Some(after(500)));
        assert_eq!(begin(&mut gather, origin, &[(0, 5_000), (1, 400)], 10), None, "that of the second does");
        assert_eq!(begin(&mut gather, origin, &[(0, 5_000)], 500), None, "it has waited");
        assert_eq!(begin(&mut gather, origin, &[], 0), None);
        assert_eq!(begin(&mut gather, origin, &[(0, 5_000); ENOUGH - 1], 0), Some(after(500)));
        assert_eq!(begin(&mut gather, origin, &[(0, 5_000); ENOUGH], 0), None);
        assert!(!gather.is_waiting());
        assert_eq!(begin(&mut Gather::new(Duration::ZERO), origin, &[(0, 5_000)], 0), None, "it is off");
    }

    #[test]
    fn a_decision_without_time_or_the_last_that_is_missing_ends_the_wait() {
        let (origin, mut gather) = (monotonic(), Gather::new(LONGEST));
        for (deadline, waiting, still) in [(501, 2, true), (500, 2, false), (501, ENOUGH, false)] {
            begin(&mut gather, origin, &[(0, 5_000)], 0);
            times(origin, &[(10, deadline)]).into_iter().for_each(|came| gather.record(came, waiting));
            assert_eq!(gather.is_waiting(), still, "{deadline} {waiting}");
        }
    }
}
