//! Failed credentials of one connection.

use std::time::{Duration, Instant};

/// Failures in a second that end a connection.
const MOST: u32 = 100;

const WINDOW: Duration = Duration::from_secs(1);

/// Counts the failures of the current second.
#[derive(Debug, Default)]
pub(super) struct Failures {
    since: Option<Instant>,
    count: u32,
}

impl Failures {
    /// Counts one more; true if there are too many.
    pub(super) fn add(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count += 1;
        self.count > MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_failures_in_a_second_are_not_too_many() {
        let start = weir_time::clock::monotonic();
        let mut failures = Failures::default();
        for second in 0..3 {
            let now = start + WINDOW * second;
            assert!((0..100).all(|_| !failures.add(now)), "in second {second}");
        }
        assert!(failures.add(start + WINDOW * 2));
    }
}
