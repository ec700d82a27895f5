//! A decaying count. It tells floods from faults that are spread over a long connection.

use std::time::{Duration, Instant};

/// A leaky bucket: the count decays evenly, by its limit per period.
#[derive(Debug)]
pub(crate) struct DecayingCount {
    limit: u32,
    period: Duration,
    /// Time in which the count decays to zero, from `updated` on.
    level: Duration,
    updated: Option<Instant>,
}

impl DecayingCount {
    pub(crate) fn new(limit: usize, period: Duration) -> Self {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).max(1);
        Self { limit, period, level: Duration::ZERO, updated: None }
    }

    /// Counts one; true if the count is now above its limit.
    pub(crate) fn add(&mut self, now: Instant) -> bool {
        if let Some(updated) = self.updated.replace(now) {
            self.level = self.level.saturating_sub(now.saturating_duration_since(updated));
        }
        self.level = self.level.saturating_add(self.period / self.limit);
        // `period / limit` is rounded down, so a count of exactly the limit is never above the period.
        self.level > self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_above_the_limit_and_a_drizzle_is_not() {
        let (start, second) = (weir_time::clock::monotonic(), Duration::from_secs(1));
        for limit in [1, 3, 1024] {
            let mut count = DecayingCount::new(limit, 10 * second);
            assert!((0..limit).all(|_| !count.add(start)), "{limit}");
            assert!(count.add(start), "{limit}");
            // After a period the count is zero.
            assert!(!count.add(start + 21 * second), "{limit}");
            let mut count = DecayingCount::new(limit, 10 * second);
            assert!((1..10_000_u32).all(|index| {
                !count.add(start + index * (10 * second / limit as u32 + Duration::from_nanos(1)))
            }));
        }
    }
}
