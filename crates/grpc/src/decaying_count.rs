//! A count that decays. It separates floods from faults that are spread over a long connection.

use std::time::{Duration, Instant};

/// A count that loses its limit within each period, evenly.
#[derive(Debug)]
pub(crate) struct DecayingCount {
    limit: u32,
    period: Duration,
    /// How long the count needs to decay to nothing, counted from `updated`.
    level: Duration,
    updated: Option<Instant>,
}

impl DecayingCount {
    pub(crate) fn new(limit: usize, period: Duration) -> Self {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).max(1);
        Self { limit, period, level: Duration::ZERO, updated: None }
    }

    /// Counts one. Whether the count is above its limit now.
    pub(crate) fn add(&mut self, now: Instant) -> bool {
        if let Some(updated) = self.updated.replace(now) {
            self.level = self.level.saturating_sub(now.saturating_duration_since(updated));
        }
        self.level = self.level.saturating_add(self.period / self.limit);
        // Rounded down above, so the limit itself is never above the period.
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
            // After a period everything is forgotten.
            assert!(!count.add(start + 21 * second), "{limit}");
            let mut count = DecayingCount::new(limit, 10 * second);
            assert!((1..10_000_u32).all(|index| {
                !count.add(start + index * (10 * second / limit as u32 + Duration::from_nanos(1)))
            }));
        }
    }
}
