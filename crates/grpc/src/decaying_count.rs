//! A decaying count. It tells floods from faults that are spread over a long connection.

use std::time::{Duration, Instant};

/// A leaky bucket: the count decays evenly, by its limit per period. Time without events is credit for a burst, up to a
/// bound: events that piled up while the socket was not read come all at once.
#[derive(Debug)]
pub(crate) struct DecayingCount {
    period: Duration,
    /// Time in which one event decays.
    each: Duration,
    credit: Duration,
    /// Time at which the count has decayed to zero; before now, there is credit.
    zero_at: Option<Instant>,
}

impl DecayingCount {
    pub(crate) fn new(limit: usize, period: Duration) -> Self {
        Self::with_credit(limit, period, Duration::ZERO)
    }

    /// Creates a count with a credit of up to this time.
    pub(crate) fn with_credit(limit: usize, period: Duration, credit: Duration) -> Self {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).max(1);
        // Rounded down, so a count of exactly the limit is never above the period.
        Self { period, each: period / limit, credit, zero_at: None }
    }

    /// Begins to count, so that there is credit from now on.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.zero_at.get_or_insert(now);
    }

    /// Counts one; true if the count is now above its limit.
    pub(crate) fn add(&mut self, now: Instant) -> bool {
        let earliest = now.checked_sub(self.credit).unwrap_or(now);
        let zero_at = self.zero_at.unwrap_or(now).max(earliest) + self.each;
        self.zero_at = Some(zero_at);
        zero_at > now + self.period
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

    #[test]
    fn what_has_piled_up_while_nobody_read_is_no_flood() {
        let (start, ms) = (weir_time::clock::monotonic(), Duration::from_millis(1));
        let mut count = DecayingCount::with_credit(100, 10 * ms, 500 * ms);
        count.begin(start);
        assert!((0..1_100).all(|_| !count.add(start + 100 * ms)), "those of 110 ms");
        assert!(count.add(start + 100 * ms));
        // The credit is bounded.
        let later = start + 10_000 * ms;
        assert!((0..5_100).all(|_| !count.add(later)), "those of 510 ms");
        assert!(count.add(later));
    }
}
