//! The bans of a strategy.

use super::{BanTerms, Limit, LimitBan, Strategy, StrategyRule};

impl Strategy {
    /// Sets the limits that ban their callers.
    #[must_use]
    pub fn with_bans(mut self, bans: Vec<LimitBan>) -> Self {
        if let StrategyRule::Rates(rates) = &mut self.rule {
            rates.bans = bans.into();
        }
        self
    }

    /// The limits that ban their callers.
    #[inline]
    pub fn bans(&self) -> &[LimitBan] {
        self.rates().map_or(&[], |rates| &rates.bans)
    }

    /// The terms of limit number `limit`, if it bans.
    pub fn ban_of(&self, limit: usize) -> Option<(&Limit, BanTerms)> {
        let ban = self.bans().iter().find(|ban| ban.limit == limit)?;
        Some((self.limits().get(limit)?, ban.terms))
    }
}
