//! The reading time of a connection: timeouts of messages pause while the connection is not read.

use std::time::{Duration, Instant};

/// A stopwatch that runs while the connection is read.
#[derive(Debug, Default)]
pub(crate) struct ReadingTime {
    /// Total up to the last pause.
    before: Duration,
    /// Start of the current interval; `None` while paused.
    since: Option<Instant>,
}

impl ReadingTime {
    /// True while the connection is read.
    pub(crate) const fn is_running(&self) -> bool {
        self.since.is_some()
    }

    /// Pauses until [`ReadingTime::resume`].
    pub(crate) fn pause(&mut self, now: Instant) {
        self.before = self.total(now);
        self.since = None;
    }

    /// Starts, or resumes after a pause.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Returns the total so far.
    pub(crate) fn total(&self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_during_a_pause() {
        let (start, second) = (weir_time::clock::monotonic(), Duration::from_secs(1));
        let mut time = ReadingTime::default();
        assert_eq!(time.total(start), Duration::ZERO);
        time.resume(start);
        time.resume(start + second);
        assert_eq!(time.total(start + 3 * second), 3 * second);
        time.pause(start + 4 * second);
        assert!(!time.is_running());
        assert_eq!(time.total(start + 9 * second), 4 * second);
        time.resume(start + 10 * second);
        assert_eq!(time.total(start + 12 * second), 6 * second);
    }
}
