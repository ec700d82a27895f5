//! The rules of a strategy: rate limits or permits.

use std::sync::Arc;

use super::permits::ConcurrencyRule;
use super::prefix::identity_prefix;
use super::{Limit, LimitBan, MAX_RESERVATION, Strategy};
use crate::algorithm::Algorithm;
use crate::algorithm::budget::CostedLimits;
use weir_units::Micros;

/// Rule of a strategy.
#[derive(Debug, Clone)]
pub enum StrategyRule {
    /// Rate limits.
    Rates(RateLimits),
    /// Permits: how many the holders of leases have at a time.
    Permits(Box<ConcurrencyRule>),
}

/// Limits that decide together: all are charged or none is.
#[derive(Debug, Clone)]
pub struct RateLimits {
    pub(super) limits: Vec<Limit>,
    algorithms: Vec<Algorithm>,
    /// Prefix of the identities of each limit's keys.
    identities: Vec<Box<[u8]>>,
    pub(super) max_reservation: Micros,
    /// The limits that ban their callers; mostly none.
    pub(super) bans: Box<[LimitBan]>,
    /// True if a limit makes its callers wait for their turn.
    paces: bool,
    /// The limits with their costs, if a limit has a cost of its own, or calls may be held.
    pub(super) costed: Option<Arc<CostedLimits>>,
    /// `near_limit` and `unit` of each limit; mostly none.
    pub(super) marks: Option<Arc<LimitMarks>>,
}

/// Properties of limits that only reports use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitMarks {
    /// `near_limit` of each limit, from 1 to 100.
    pub near_percent: Box<[Option<u8>]>,
    /// The unit of each limit; empty if it has none.
    pub units: Box<[Box<str>]>,
}

impl LimitMarks {
    /// `near_limit` of the limit at `place`.
    pub fn near_percent(&self, place: usize) -> Option<u8> {
        self.near_percent.get(place).copied().flatten()
    }
}

impl RateLimits {
    pub(super) fn new(name: &str, limits: Vec<Limit>) -> Self {
        Self {
            algorithms: limits.iter().map(|limit| limit.algorithm).collect(),
            identities: limits.iter().map(|limit| identity_prefix(name, limit)).collect(),
            max_reservation: MAX_RESERVATION,
            bans: Box::default(),
            paces: limits.iter().any(paces),
            costed: None,
            marks: None,
            limits,
        }
    }

    /// Returns the limits for the strategy `name`.
    pub(super) fn renamed(&self, name: &str) -> Self {
        let identities = self.limits.iter().map(|limit| identity_prefix(name, limit)).collect();
        Self { identities, ..self.clone() }
    }

    pub(super) fn change(&mut self, name: &str, change: impl Fn(&Limit) -> Option<Algorithm>) {
        let own = self.limits.iter_mut().zip(&mut self.algorithms).zip(&mut self.identities);
        for ((limit, own), identity) in own {
            if let Some(algorithm) = change(limit) {
                limit.algorithm = algorithm;
                *own = algorithm;
                *identity = identity_prefix(name, limit);
            }
        }
    }

    pub(super) fn set_near(&mut self, place: usize, percent: u8) {
        let count = self.limits.len();
        let none = || {
            let (near_percent, units) = (vec![None; count].into(), vec![Box::default(); count].into());
            Arc::new(LimitMarks { near_percent, units })
        };
        let marks = Arc::make_mut(self.marks.get_or_insert_with(none));
        if let Some(own) = marks.near_percent.get_mut(place) {
            *own = Some(percent);
        }
    }

    /// Computes what follows from the limits, their costs and their marks. Costs have copies of algorithms and marks, because
    /// stores decide by them alone.
    pub(super) fn renew(&mut self) {
        self.paces = self.limits.iter().any(paces);
        let Some(costed) = &mut self.costed else { return };
        let own = Arc::make_mut(costed).limits.iter_mut().zip(&self.algorithms).enumerate();
        for (place, (own, algorithm)) in own {
            own.algorithm = *algorithm;
            own.near_percent = self.marks.as_deref().and_then(|marks| marks.near_percent(place));
        }
    }

    pub(super) fn is_special(&self) -> bool {
        self.paces || self.costed.is_some() || self.marks.is_some()
    }
}

impl Strategy {
    /// The limits, in the order in which they are judged and reported. Empty for permits.
    #[inline]
    pub fn limits(&self) -> &[Limit] {
        self.rates().map_or(&[], |rates| &rates.limits)
    }

    /// The limits' algorithms, in the same order.
    #[inline]
    pub fn algorithms(&self) -> &[Algorithm] {
        self.rates().map_or(&[], |rates| &rates.algorithms)
    }

    /// Prefix of the identities of the keys of limit number `index` ([`write_identity`](crate::key::write_identity)).
    #[inline]
    pub(crate) fn identity(&self, index: usize) -> &[u8] {
        self.rates().and_then(|rates| rates.identities.get(index)).map_or(&[], |identity| identity)
    }

    /// Sets the bound of a reservation's wait.
    #[must_use]
    pub fn with_max_reservation(mut self, max_reservation: Micros) -> Self {
        if let StrategyRule::Rates(rates) = &mut self.rule {
            rates.max_reservation = max_reservation;
        }
        self
    }

    /// The longest wait that a reservation may ask for.
    #[inline]
    pub fn max_reservation(&self) -> Micros {
        self.rates().map_or(MAX_RESERVATION, |rates| rates.max_reservation)
    }

    /// True if a limit makes its callers wait for their turn.
    #[inline]
    pub fn paces(&self) -> bool {
        self.rates().is_some_and(|rates| rates.paces)
    }
}

/// True if a limit makes its callers wait for their turn.
fn paces(limit: &Limit) -> bool {
    limit.algorithm.undelayed().is_some() && !limit.algorithm.is_shadow()
}
