//! How long a connection has been read: time-outs of messages do not run while we do not read.

use std::time::{Duration, Instant};

/// Counts the time in which the connection is read.
#[derive(Debug, Default)]
pub(crate) struct ReadingTime {
    /// Until the last pause.
    before: Duration,
    /// Since when it is read, if it is.
    since: Option<Instant>,
}

impl ReadingTime {
    /// Whether the connection is read.
    pub(crate) const fn is_running(&self) -> bool {
        self.since.is_some()
    }

    /// The connection is not read until [`ReadingTime::resume`].
    pub(crate) fn pause(&mut self, now: Instant) {
        self.before = self.total(now);
        self.since = None;
    }

    /// The connection is read.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// All of the time so far.
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
