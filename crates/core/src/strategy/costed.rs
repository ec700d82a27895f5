//! Costs of a strategy's limits, and what is only said about them.

use std::sync::Arc;

use super::rates::RateLimits;
use super::{Limit, LimitMarks, Strategy, StrategyRule};
use crate::algorithm::Algorithm;
use crate::algorithm::budget::CostedLimits;

impl Strategy {
    /// True if a limit has a cost of its own or marks, or makes its callers wait: few strategies. One look tells an answer
    /// that it needs none of it.
    #[inline]
    pub fn is_special(&self) -> bool {
        self.is_special
    }

    pub(super) fn change_limits(&mut self, change: impl Fn(&Limit) -> Option<Algorithm>) {
        if let StrategyRule::Rates(rates) = &mut self.rule {
            rates.change(&self.key_name, change);
        }
        self.renew();
    }

    /// Computes what follows from the limits, their costs and their marks, after a change of them.
    pub(super) fn renew(&mut self) {
        if let StrategyRule::Rates(rates) = &mut self.rule {
            rates.renew();
        }
        self.is_special = self.rates().is_some_and(RateLimits::is_special);
    }

    /// Gives its limits costs of their own, one entry for each limit and in their order. The algorithms and the `near_limit` of
    /// the entries are those of the limits, also after a change of numbers.
    #[must_use]
    pub fn with_costs(mut self, mut costed: CostedLimits) -> Self {
        if let StrategyRule::Rates(rates) = &mut self.rule {
            costed.limits.truncate(rates.limits.len());
            rates.costed = Some(Arc::new(costed));
        }
        self.renew();
        self
    }

    /// Sets what is only said about its limits, in their order.
    #[must_use]
    pub fn with_marks(mut self, near_percent: Vec<Option<u8>>, units: Vec<Box<str>>) -> Self {
        let is_said = near_percent.iter().any(Option::is_some) || units.iter().any(|unit| !unit.is_empty());
        if let StrategyRule::Rates(rates) = &mut self.rule {
            let marks = LimitMarks { near_percent: near_percent.into(), units: units.into() };
            rates.marks = is_said.then(|| Arc::new(marks));
        }
        self.renew();
        self
    }

    /// Returns the marks of the limits.
    #[inline]
    pub fn marks(&self) -> Option<&LimitMarks> {
        if self.is_special { self.rates()?.marks.as_deref() } else { None }
    }

    /// The limits with their costs, if a limit has a cost of its own, or calls may be held. Then the store is asked by
    /// them.
    #[inline]
    pub fn costed(&self) -> Option<&Arc<CostedLimits>> {
        if self.is_special { self.rates()?.costed.as_ref() } else { None }
    }
}
