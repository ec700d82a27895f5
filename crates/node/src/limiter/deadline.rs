//! The store's share of a call's deadline. The rest is for the failure policy's answer.

use std::time::{Duration, Instant};

use weir_units::Micros;

/// Most time reserved for the policy's answer: enough to reach a caller on the same continent. A caller with so long
/// a deadline that this is less than a tenth of it is bounded by the store's own timeout anyway.
const MOST: Duration = Duration::from_millis(25);

/// Least time reserved for the policy's answer: the timer fires some 0.1 ms late, and the round trip to the client
/// takes as long as the machines are busy. `docs/configuration/redis.md` has the table that follows from the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerReserve(Duration);

impl Default for AnswerReserve {
    fn default() -> Self {
        Self(Duration::from_millis(2))
    }
}

impl From<Micros> for AnswerReserve {
    fn from(least: Micros) -> Self {
        Self(Duration::from(least).min(MOST))
    }
}

impl AnswerReserve {
    /// The caller's deadline less a tenth of the remaining time (this at least, 25 ms at most, never more than half), so
    /// that the failure policy can answer before the caller gives up.
    #[inline]
    #[must_use]
    pub fn for_store(self, deadline: Instant, now: Instant) -> Instant {
        let left = deadline.saturating_duration_since(now);
        now + (left - (left / 10).clamp(self.0, MOST).min(left / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_store(deadline: Instant, now: Instant) -> Instant {
        AnswerReserve::default().for_store(deadline, now)
    }

    /// A throttled machine keeps more of short deadlines, and never more than half.
    #[test]
    fn the_least_margin_is_a_setting() {
        let now = weir_time::clock::monotonic();
        let margin_us = |left_us: u64, least: Micros| {
            let left = Duration::from_micros(left_us);
            (now + left - AnswerReserve::from(least).for_store(now + left, now)).as_micros()
        };
        let ten = Micros::from_millis(10);
        assert_eq!(
            [8_000, 20_000, 50_000, 200_000].map(|left| margin_us(left, ten)),
            [4_000, 10_000, 10_000, 20_000]
        );
        assert_eq!(margin_us(1_000_000, ten), 25_000);
        assert_eq!(margin_us(5_000, Micros(100)), 500, "a tenth");
        assert_eq!(margin_us(200_000, Micros::from_secs(1)), 25_000, "it is bounded");
    }

    #[test]
    fn the_margin_is_a_tenth_within_bounds() {
        let now = weir_time::clock::monotonic();
        let margin_us = |left_us: u64| {
            let left = Duration::from_micros(left_us);
            (now + left - for_store(now + left, now)).as_micros()
        };
        assert_eq!(margin_us(0), 0);
        assert_eq!(margin_us(600), 300);
        assert_eq!(margin_us(5_000), 2_000);
        assert_eq!(margin_us(20_000), 2_000);
        assert_eq!(margin_us(50_000), 5_000);
        assert_eq!(margin_us(10_000_000), 25_000);
    }

    #[test]
    fn the_documented_times_are_these() {
        let now = weir_time::clock::monotonic();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration/redis.md");
        let page = std::fs::read_to_string(page).unwrap();
        let table = page.split_once("| the caller's deadline |").unwrap().1;
        let ms = |cell: &str| -> f64 { cell.trim().split(' ').next().unwrap().parse().unwrap() };
        let mut rows = 0;
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            let cells: Vec<f64> = row.trim_matches('|').split('|').map(ms).collect();
            let after = |ms: f64| now + Duration::from_secs_f64(ms / 1e3);
            assert_eq!(for_store(after(cells[0]), now), after(cells[1]), "{row}");
            assert!((cells[0] - cells[1] - cells[2]).abs() < 1e-9, "{row}");
            rows += 1;
        }
        assert_eq!(rows, 6);
    }

    #[test]
    fn a_deadline_in_the_past_leaves_no_time() {
        let now = weir_time::clock::monotonic();
        let later = now + Duration::from_millis(2);
        assert_eq!(for_store(now, later), later);
    }
}
