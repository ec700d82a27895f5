//! Counts the calls to a node over the last second, in tenths, without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use weir_time::clock::monotonic;

const TENTHS: usize = 10;
const TENTH_MS: u128 = 100;

pub(super) struct RecentCalls {
    begun: Instant,
    /// Each packs the number of its tenth, its calls and its failures: 32, 16 and 16 bits.
    tenths: [AtomicU64; TENTHS],
}

/// Sums over a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CallSums {
    pub(super) calls: u32,
    pub(super) failed: u32,
}

impl Default for RecentCalls {
    fn default() -> Self {
        // Tenths begin at 1, so that 0 is none.
        Self { begun: monotonic(), tenths: Default::default() }
    }
}

impl RecentCalls {
    /// Counts a call by when it was sent.
    pub(super) fn count(&self, sent: Instant, has_failed: bool) {
        let tenth = self.tenth(sent);
        let Some(slot) = self.tenths.get(tenth as usize % TENTHS) else { return };
        let count = |packed| {
            let (number, sums) = unpack(packed);
            // A late result of a tenth whose place is taken counts for nothing.
            (number <= tenth).then(|| {
                let sums = if number == tenth { sums } else { CallSums::default() };
                let calls = (sums.calls + 1).min(u16::MAX.into());
                let failed = (sums.failed + u32::from(has_failed)).min(u16::MAX.into());
                pack(tenth, CallSums { calls, failed })
            })
        };
        let _ = slot.fetch_update(Relaxed, Relaxed, count);
    }

    pub(super) fn of_last_second(&self, now: Instant) -> CallSums {
        let last = self.tenth(now);
        let tenths = self.tenths.iter().map(|tenth| unpack(tenth.load(Relaxed)));
        let recent = tenths.filter(|(number, _)| *number > 0 && number + TENTHS as u32 > last);
        recent.fold(CallSums::default(), |sum, (_, one)| CallSums {
            calls: sum.calls + one.calls,
            failed: sum.failed + one.failed,
        })
    }

    pub(super) fn clear(&self) {
        self.tenths.iter().for_each(|tenth| tenth.store(0, Relaxed));
    }

    fn tenth(&self, at: Instant) -> u32 {
        let passed = at.saturating_duration_since(self.begun).as_millis() / TENTH_MS;
        u32::try_from(passed).unwrap_or(u32::MAX - 1).saturating_add(1)
    }
}

fn pack(number: u32, sums: CallSums) -> u64 {
    u64::from(number) << 32 | u64::from(sums.calls) << 16 | u64::from(sums.failed)
}

fn unpack(packed: u64) -> (u32, CallSums) {
    let calls = (packed >> 16) as u32 & 0xffff;
    ((packed >> 32) as u32, CallSums { calls, failed: packed as u32 & 0xffff })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_count_for_a_second() {
        let recent = RecentCalls::default();
        let at = |ms| recent.begun + Duration::from_millis(ms);
        let sums = |calls, failed| CallSums { calls, failed };
        for (ms, has_failed) in [(0, false), (99, true), (100, true), (950, false)] {
            recent.count(at(ms), has_failed);
        }
        assert_eq!(recent.of_last_second(at(999)), sums(4, 2));
        assert_eq!(recent.of_last_second(at(1_000)), sums(2, 1), "the first tenth is over");
        recent.count(at(1_050), true);
        recent.count(at(20), true);
        assert_eq!(recent.of_last_second(at(1_050)), sums(3, 2), "a result that is too late");
        assert_eq!(recent.of_last_second(at(10_000)), sums(0, 0));
        recent.clear();
        assert_eq!(recent.of_last_second(at(1_050)), sums(0, 0));
    }

    #[test]
    fn full_counts_stay_where_they_are() {
        let recent = RecentCalls::default();
        for _ in 0..70_000 {
            recent.count(recent.begun, true);
        }
        assert_eq!(recent.of_last_second(recent.begun), CallSums { calls: 65_535, failed: 65_535 });
    }
}
