//! The store's time, as exactly as a node knows it.

use weir_units::Micros;

/// By how much two clocks may drift apart, in millionths. Faster slews count as steps.
pub(super) const DRIFT_PPM: u64 = 1_000;

/// The store's time lies between two bounds. Both move on with the node's clock, and apart with the age of what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreClock {
    /// The store's time minus the node's, at least and at most.
    least: i64,
    most: i64,
    /// The node's time of the answer.
    as_of: Micros,
}

impl StoreClock {
    /// Creates the bounds that an answer gives: the store read `time` after the node sent the call at `sent`, and before it
    /// had the answer at `received`.
    pub fn of_answer(time: Micros, sent: Micros, received: Micros) -> Self {
        let offset = |node: Micros| (time.0 as i64).saturating_sub(node.0 as i64);
        Self { least: offset(received), most: offset(sent), as_of: received }
    }

    /// Combines both bounds. If they contradict one another, a clock has stepped, and the later one counts.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        let aged = self.aged(later.as_of);
        let both = Self { least: aged.least.max(later.least), most: aged.most.min(later.most), ..later };
        if both.least <= both.most { both } else { later }
    }

    /// The bounds of the store's time at the node's time `now`.
    #[must_use]
    pub fn at(self, now: Micros) -> (Micros, Micros) {
        let aged = self.aged(now);
        let time = |offset: i64| Micros((now.0 as i64).saturating_add(offset).max(0) as u64);
        (time(aged.least), time(aged.most))
    }

    /// Returns the distance of the bounds.
    #[must_use]
    pub fn error(self, now: Micros) -> Micros {
        let (least, most) = self.at(now);
        Micros(most.0.saturating_sub(least.0))
    }

    /// The number of the store's window at the node's time `now`, if it is certain.
    #[must_use]
    pub fn window(self, now: Micros, length: Micros) -> Option<u64> {
        let (least, most) = self.at(now);
        let window = least.0 / length.0.max(1);
        (window == most.0 / length.0.max(1)).then_some(window)
    }

    fn aged(self, now: Micros) -> Self {
        let age = now.0.saturating_sub(self.as_of.0);
        let drift = age.saturating_mul(DRIFT_PPM).div_ceil(1_000_000) as i64;
        Self { least: self.least.saturating_sub(drift), most: self.most.saturating_add(drift), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_certain_except_near_its_ends() {
        let length = Micros(1_000_000);
        let time = StoreClock::of_answer(Micros(50_400_000), Micros(100), Micros(300));
        assert_eq!(time.at(Micros(300)), (Micros(50_400_000), Micros(50_400_200)));
        assert_eq!(time.window(Micros(300), length), Some(50));
        // After 600 ms the drift is 600 µs at each side.
        assert_eq!(time.window(Micros(599_600), length), None, "it may be in the next one");
        assert_eq!(time.window(Micros(601_300), length), Some(51));
        let narrower = time.and(StoreClock::of_answer(Micros(50_900_000), Micros(499_950), Micros(500_000)));
        assert_eq!(narrower.error(Micros(500_000)), Micros(50));
        let stepped =
            narrower.and(StoreClock::of_answer(Micros(60_000_000), Micros(600_000), Micros(600_400)));
        assert_eq!(stepped.error(Micros(600_400)), Micros(400), "the clock has stepped");
    }
}
