//! `near_limit`: whether a limit is nearly used.

use super::{Algorithm, LimitVerdict};

impl Algorithm {
    /// The level from which on this part of the limit, in percent, is used.
    pub fn near_level(&self, percent: u8) -> u64 {
        let units = u128::from(self.limit()) * u128::from(percent);
        u64::try_from(units.div_ceil(100)).unwrap_or(u64::MAX).saturating_mul(self.weight())
    }

    /// True if this part of the limit is used after `charged` units were charged; and if the charge has taken the use over
    /// it.
    pub fn is_near(&self, percent: u8, said: &LimitVerdict, charged: u64) -> (bool, bool) {
        let (mark, before) = (self.near_level(percent), said.level_before);
        let level = before.saturating_add(charged.saturating_mul(self.weight()));
        (level >= mark, before < mark && level >= mark)
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{Micros, Retry};

    use super::*;

    #[test]
    fn a_charge_crosses_the_mark_once() {
        let limit = Algorithm::fixed_window(10, Micros::from_secs(60), false, false).unwrap();
        let said = |level_before| LimitVerdict {
            cause: None,
            remaining: 0,
            retry: Retry::Now,
            reset_after: Micros::ZERO,
            level_before,
        };
        assert_eq!(limit.is_near(80, &said(6), 1), (false, false));
        assert_eq!(limit.is_near(80, &said(7), 1), (true, true));
        assert_eq!(limit.is_near(80, &said(8), 1), (true, false));
        assert_eq!(limit.is_near(75, &said(7), 0), (false, false), "of 10 units 75 % are 8");
    }
}
