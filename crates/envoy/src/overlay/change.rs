//! Changes of a rule by an entry.

use crate::rules::{Draft, Kind, RateLimit};
use weir_core::strategy::{ApproximateNumbers, FailurePolicy};

/// The names of the algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverlayAlgorithm {
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    Bucket,
    IntervalRefill,
}

/// The keys of an entry that are given.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RuleChange {
    pub(crate) algorithm: Option<OverlayAlgorithm>,
    pub(crate) burst: Option<u32>,
    pub(crate) count_rejected: Option<bool>,
    pub(crate) unit_multiplier: Option<u32>,
    pub(crate) on_store_failure: Option<FailurePolicy>,
    pub(crate) bill: Option<bool>,
    /// `Some(None)` is unlimited.
    pub(crate) max_debt: Option<Option<u64>>,
    /// Nodes count on their own, within this bound.
    pub(crate) approximate: Option<ApproximateNumbers>,
}

impl RuleChange {
    /// The keys that it has.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("algorithm", self.algorithm.is_some()),
            ("burst", self.burst.is_some()),
            ("count_rejected", self.count_rejected.is_some()),
            ("unit_multiplier", self.unit_multiplier.is_some()),
            ("on_store_failure", self.on_store_failure.is_some()),
            ("bill", self.bill.is_some()),
            ("max_debt", self.max_debt.is_some()),
            ("approximate", self.approximate.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(key, _)| key)
    }

    /// Changes the limit of a rule.
    pub(crate) fn apply(&self, draft: &mut Draft) -> Result<(), String> {
        if let Some(key) = self.keys().find(|key| draft.given.contains(key)) {
            return Err(format!("its file sets `{key}` too; remove it in one of the two places"));
        }
        let limit = draft.limit.as_ref().ok_or("it is unlimited, so there is nothing to count")?;
        draft.limit = Some(self.limit(limit, &draft.given)?);
        Ok(())
    }

    fn limit(&self, old: &RateLimit, given: &[&'static str]) -> Result<RateLimit, String> {
        let kind = self.kind(old)?;
        let policy = self.on_store_failure.unwrap_or(old.strategy().on_store_failure());
        let multiplier = self.unit_multiplier.unwrap_or(old.unit_multiplier());
        let new = RateLimit::new(old.requests_per_unit(), old.unit(), multiplier, kind, policy);
        let new = new.map_err(|invalid| format!("{} is out of bounds: {}", invalid.field, invalid.bound))?;
        let from_file = given.contains(&"bill").then_some(old.bills());
        let bills = self.bill.or(from_file).unwrap_or(new.bills());
        if self.max_debt.is_some() && !bills {
            return Err("max_debt is for rules that bill; this one has no `bill: true`".to_owned());
        }
        let new = new.billing(bills);
        let new = match self.max_debt.or(old.own_max_debt()) {
            Some(max_debt) => new.with_max_debt(max_debt),
            None => new,
        };
        let new = match self.approximate {
            Some(numbers) => {
                new.with_approximate(numbers).map_err(|error| format!("approximate: {error}"))?
            }
            None => new,
        };
        new.with_local().map_err(|error| format!("on_store_failure: {error}"))
    }

    fn kind(&self, old: &RateLimit) -> Result<Kind, String> {
        let (algorithm, counted, burst) = match old.kind() {
            Kind::FixedWindow { count_rejected } => (OverlayAlgorithm::FixedWindow, count_rejected, None),
            Kind::SlidingWindow => (OverlayAlgorithm::SlidingWindow, false, None),
            Kind::SlidingLog { count_rejected } => (OverlayAlgorithm::SlidingLog, count_rejected, None),
            Kind::Bucket { burst } => (OverlayAlgorithm::Bucket, false, Some(burst)),
            Kind::IntervalRefill { burst } => (OverlayAlgorithm::IntervalRefill, false, Some(burst)),
        };
        let algorithm = self.algorithm.unwrap_or(algorithm);
        let count_rejected = self.count_rejected.unwrap_or(counted);
        let burst = self.burst.map(u64::from).or(burst).unwrap_or(u64::from(old.requests_per_unit()));
        let is_bucket = matches!(algorithm, OverlayAlgorithm::Bucket | OverlayAlgorithm::IntervalRefill);
        if self.burst.is_some() && !is_bucket {
            return Err("burst is for token_bucket, gcra, leaky_bucket and interval_refill".to_owned());
        }
        let counts = matches!(algorithm, OverlayAlgorithm::FixedWindow | OverlayAlgorithm::SlidingLog);
        if count_rejected && !counts {
            return Err("count_rejected is for fixed_window and sliding_log".to_owned());
        }
        Ok(match algorithm {
            OverlayAlgorithm::FixedWindow => Kind::FixedWindow { count_rejected },
            OverlayAlgorithm::SlidingWindow => Kind::SlidingWindow,
            OverlayAlgorithm::SlidingLog => Kind::SlidingLog { count_rejected },
            OverlayAlgorithm::Bucket => Kind::Bucket { burst },
            OverlayAlgorithm::IntervalRefill => Kind::IntervalRefill { burst },
        })
    }
}
