//! Schedule of calls, in nanoseconds of the run.

use super::plan::Pace;

/// Schedule of one thread's calls.
#[derive(Debug)]
pub(super) enum Schedule {
    /// Closed loop: always now.
    Closed,
    /// Open loop: the n-th at `first + n · period`, whether or not the one before was answered.
    Open { first_ns: f64, period_ns: f64, made: u64 },
}

impl Schedule {
    /// The schedule of thread `thread` of `threads`: they take turns.
    #[allow(clippy::cast_precision_loss)] // threads are few
    pub(super) fn new(pace: Pace, thread: usize, threads: usize) -> Self {
        match pace {
            Pace::Closed => Self::Closed,
            Pace::Open(rate) => {
                let period_ns = 1e9 * threads as f64 / rate;
                Self::Open { first_ns: period_ns * thread as f64 / threads as f64, period_ns, made: 0 }
            }
        }
    }

    /// Time of the next call; `None` for a closed loop, which calls whenever there is room.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn due_ns(&self) -> Option<u64> {
        match self {
            Self::Closed => None,
            // Computed from the start each time, so that no error adds up.
            Self::Open { first_ns, period_ns, made } => Some((first_ns + period_ns * *made as f64) as u64),
        }
    }

    /// Time until which there is nothing to do but to wait for answers, at most `look_ns`. If `has_room`, it is the
    /// time of the next call, which may be past.
    pub(super) fn wake_ns(&self, has_room: bool, look_ns: u64) -> u64 {
        let due_ns = self.due_ns().filter(|_| has_room);
        due_ns.map_or(look_ns, |due_ns| due_ns.min(look_ns))
    }

    /// Advances to the next call.
    pub(super) fn step(&mut self) {
        if let Self::Open { made, .. } = self {
            *made += 1;
        }
    }

    /// Number of calls due before `end_ns` that were not made.
    pub(super) fn missed(&self, end_ns: u64) -> u64 {
        let (Some(due), Self::Open { period_ns, .. }) = (self.due_ns(), self) else { return 0 };
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let missed = (end_ns.saturating_sub(due) as f64 / period_ns).ceil() as u64;
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, Schedule};

    #[test]
    fn calls_are_due_at_even_distances_and_threads_take_turns() {
        let mut dues = Vec::new();
        for thread in 0..2 {
            let mut schedule = Schedule::new(Pace::Open(1_000.0), thread, 2);
            for _ in 0..3 {
                dues.push(schedule.due_ns().unwrap());
                schedule.step();
            }
        }
        dues.sort_unstable();
        assert_eq!(dues, [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]);
    }

    #[test]
    fn what_was_never_sent_is_counted() {
        let mut schedule = Schedule::new(Pace::Open(1_000.0), 0, 1);
        assert_eq!(schedule.missed(10_000_000), 10);
        schedule.step();
        assert_eq!(schedule.missed(10_000_000), 9);
        assert_eq!(schedule.missed(500_000), 0);
        assert_eq!(Schedule::new(Pace::Closed, 0, 1).missed(10_000_000), 0);
    }

    /// Calls that became due while others were sent were once slept over, for up to 10 ms.
    #[test]
    fn a_call_that_is_due_and_has_room_is_not_slept_over() {
        let mut schedule = Schedule::new(Pace::Open(1_000.0), 0, 1);
        assert_eq!(schedule.wake_ns(true, 10_000_000), 0, "due before now, whenever that is");
        assert_eq!(schedule.wake_ns(false, 10_000_000), 10_000_000, "an answer makes room");
        schedule.step();
        assert_eq!(schedule.wake_ns(true, 10_000_000), 1_000_000);
        assert_eq!(schedule.wake_ns(true, 500_000), 500_000);
        assert_eq!(Schedule::new(Pace::Closed, 0, 1).wake_ns(true, 500_000), 500_000);
    }

    #[test]
    fn no_error_adds_up() {
        let mut schedule = Schedule::new(Pace::Open(3.0), 0, 1);
        for _ in 0..3_000_000 {
            schedule.step();
        }
        assert_eq!(schedule.due_ns(), Some(1_000_000_000_000_000));
    }
}
