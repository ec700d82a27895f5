//! How long the store may take, so that its absence can still be answered in time.

use std::time::{Duration, Instant};

/// Timers tick in milliseconds, and may fire a tick late.
const TICK: Duration = Duration::from_millis(1);
/// Enough for an answer to reach a caller on the same continent. A caller that waits so long that this
/// is the smaller part is served by the store's own deadline anyway.
const MOST: Duration = Duration::from_millis(25);

/// The caller's deadline less a tenth of the time that is left (a tick at least, 25 ms at most, and
/// never more than half): what the failure policy needs to answer before the caller has gone.
pub(super) fn for_store(deadline: Instant, now: Instant) -> Instant {
    let left = deadline.saturating_duration_since(now);
    now + (left - (left / 10).clamp(TICK, MOST).min(left / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_a_tenth_within_bounds() {
        let now = crate::clock::monotonic();
        let margin_us = |left_us: u64| {
            let left = Duration::from_micros(left_us);
            (now + left - for_store(now + left, now)).as_micros()
        };
        assert_eq!(margin_us(0), 0);
        assert_eq!(margin_us(600), 300);
        assert_eq!(margin_us(5_000), 1_000);
        assert_eq!(margin_us(20_000), 2_000);
        assert_eq!(margin_us(10_000_000), 25_000);
    }

    #[test]
    fn a_deadline_in_the_past_leaves_no_time() {
        let now = crate::clock::monotonic();
        assert_eq!(for_store(now, now + TICK), now + TICK);
    }
}
