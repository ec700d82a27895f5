//! Hysteresis of failures: three in a row begin the failed state, and two successes in a row end it.

use std::sync::Arc;
use std::time::Duration;

use crate::backend::Since;

/// Consecutive failures that begin the failed state.
const BEGINS: u32 = 3;

const ENDS: u32 = 2;

/// The state of a node (or of the topology), from its latest results.
#[derive(Debug, Default)]
pub(super) struct Streak {
    state: State,
    /// Consecutive results that contradict the state.
    against: u32,
    /// Start of the first failure in a row, and the reason of the latest one.
    failing: Option<(Since, Arc<str>)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No success yet, and fewer than [`BEGINS`] failures.
    #[default]
    Unknown,
    Working,
    Failed,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreakChange {
    /// The failed state begins.
    Began,
    Ended {
        lasted: Duration,
    },
}

impl Streak {
    pub(super) fn failed(&mut self, why: &str, now: Since) -> Option<StreakChange> {
        let since = match &self.failing {
            Some((since, _)) if self.state == State::Failed || self.against > 0 => *since,
            _ => now,
        };
        self.failing = Some((since, why.into()));
        if self.state == State::Failed {
            self.against = 0;
            return None;
        }
        self.against += 1;
        (self.against >= BEGINS).then(|| {
            (self.state, self.against) = (State::Failed, 0);
            StreakChange::Began
        })
    }

    pub(super) fn succeeded(&mut self, now: Since) -> Option<StreakChange> {
        if self.state == State::Failed {
            self.against += 1;
            if self.against < ENDS {
                return None;
            }
        }
        let was = std::mem::replace(&mut self.state, State::Working);
        self.against = 0;
        let (since, _) = self.failing.take().filter(|_| was == State::Failed)?;
        Some(StreakChange::Ended { lasted: now.instant.saturating_duration_since(since.instant) })
    }

    pub(super) fn is_working(&self) -> bool {
        self.state == State::Working
    }

    /// Returns since when and why it does not work. Before the first success a single failure is enough.
    pub(super) fn failure(&self) -> Option<(Since, &Arc<str>)> {
        self.failing.as_ref().filter(|_| !self.is_working()).map(|(since, why)| (*since, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Micros;

    /// A clock that advances by a second at each reading.
    struct Ticks(Since, u64);

    impl Ticks {
        fn start() -> Self {
            Self(Since::now(), 0)
        }

        fn at(&self, second: u64) -> Since {
            let passed = Duration::from_secs(second);
            Since { wall: Micros(self.0.wall.0 + second * 1_000_000), instant: self.0.instant + passed }
        }

        fn next(&mut self) -> Since {
            self.1 += 1;
            self.at(self.1)
        }
    }

    #[test]
    fn three_failures_in_a_row_begin_it_and_two_successes_in_a_row_end_it() {
        let (mut streak, mut time) = (Streak::default(), Ticks::start());
        assert_eq!(streak.succeeded(time.next()), None);
        for _ in 0..3 {
            assert_eq!(streak.failed("one", time.next()), None);
            assert_eq!(streak.failed("two", time.next()), None);
            assert!(streak.is_working() && streak.failure().is_none());
            assert_eq!(streak.succeeded(time.next()), None);
        }
        let first = time.1 + 1;
        assert_eq!(streak.failed("one", time.next()), None);
        assert_eq!(streak.failed("two", time.next()), None);
        assert_eq!(streak.failed("three", time.next()), Some(StreakChange::Began));
        assert_eq!(streak.failure(), Some((time.at(first), &Arc::from("three"))), "since its first failure");
        assert_eq!(streak.succeeded(time.next()), None);
        assert_eq!(streak.failed("four", time.next()), None, "it is one failed state");
        assert_eq!(streak.failure(), Some((time.at(first), &Arc::from("four"))));
        assert_eq!(streak.succeeded(time.next()), None);
        assert!(!streak.is_working());
        let lasted = Duration::from_secs(time.1 + 1 - first);
        assert_eq!(streak.succeeded(time.next()), Some(StreakChange::Ended { lasted }));
        assert!(streak.is_working() && streak.failure().is_none());
    }

    #[test]
    fn at_the_start_one_success_is_enough_and_one_failure_is_shown() {
        let (mut streak, mut time) = (Streak::default(), Ticks::start());
        assert!(!streak.is_working() && streak.failure().is_none());
        assert_eq!(streak.failed("one", time.next()), None);
        assert!(!streak.is_working());
        assert_eq!(streak.failure(), Some((time.at(1), &Arc::from("one"))));
        assert_eq!(streak.succeeded(time.next()), None);
        assert!(streak.is_working() && streak.failure().is_none());

        let mut streak = Streak::default();
        let turns = [(); 4].map(|()| streak.failed("it", time.next()));
        assert_eq!(turns, [None, None, Some(StreakChange::Began), None]);
    }
}
