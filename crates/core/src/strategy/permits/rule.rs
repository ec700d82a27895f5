//! Parameters of a concurrency limit, checked once.

use super::adaptive::AdaptiveRule;
use super::partitions::Partitions;
use weir_units::{CEILING, Micros};

/// The longest time that a configuration may let a lease have without being renewed.
pub const LONGEST_TTL: Micros = Micros::from_secs(7 * 24 * 3600);

/// The highest limit that a controller may reach.
pub const MAX_ADAPTIVE_LIMIT: u64 = 1_000_000_000;

/// The most leases that a key may have.
pub const MAX_LEASES: usize = 10_000;

/// Checked parameters of a concurrency limit.
#[derive(Debug, Clone, PartialEq)]
pub struct ConcurrencyRule(ConcurrencyNumbers);

/// Parameters of a [`ConcurrencyRule`].
#[derive(Debug, Clone, PartialEq)]
pub struct ConcurrencyNumbers {
    /// Source of the limit.
    pub source: LimitSource,
    /// Default time to live of a lease.
    pub ttl: Micros,
    /// Longest time to live of a lease.
    pub max_ttl: Micros,
    /// Largest weight of a lease. `None`: the highest limit.
    pub max_weight: Option<u64>,
    /// Guaranteed shares.
    pub partitions: Option<Partitions>,
}

/// Source of a limit.
#[derive(Debug, Clone, PartialEq)]
pub enum LimitSource {
    /// The configuration.
    Fixed(u64),
    /// The reports of the holders.
    Adaptive(AdaptiveRule),
}

/// Parameters that contradict one another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value} {bound}")]
pub struct ConcurrencyError {
    /// The field, as the configuration names it.
    pub field: &'static str,
    /// The value.
    pub value: String,
    /// The bound that it breaks.
    pub bound: String,
}

impl ConcurrencyRule {
    /// Checks the parameters.
    pub fn new(numbers: ConcurrencyNumbers) -> Result<Self, ConcurrencyError> {
        let ConcurrencyNumbers { source, ttl, max_ttl, max_weight, .. } = &numbers;
        if *max_ttl == Micros::ZERO || *max_ttl > LONGEST_TTL {
            return Err(wrong("max_ttl", max_ttl, format!("is out of range: 1us to {LONGEST_TTL}")));
        }
        if *ttl == Micros::ZERO || ttl > max_ttl {
            return Err(wrong("ttl", ttl, format!("is out of range: 1us to `max_ttl`, which is {max_ttl}")));
        }
        match source {
            LimitSource::Fixed(limit) if *limit >= CEILING => {
                return Err(wrong("limit", limit, format!("is too large: at most {}", CEILING - 1)));
            }
            LimitSource::Fixed(_) => {}
            LimitSource::Adaptive(adaptive) => check_adaptive(adaptive)?,
        }
        let most = most(source);
        match max_weight {
            Some(weight) if *weight == 0 || *weight > most.max(1) => {
                let bound = format!("is out of range: 1 to the highest limit, which is {most}");
                Err(wrong("max_weight", weight, bound))
            }
            _ => Ok(Self(numbers)),
        }
    }

    /// The parameters.
    pub fn numbers(&self) -> &ConcurrencyNumbers {
        &self.0
    }

    /// The rule of an adaptive limit.
    pub fn adaptive(&self) -> Option<&AdaptiveRule> {
        match &self.0.source {
            LimitSource::Fixed(_) => None,
            LimitSource::Adaptive(adaptive) => Some(adaptive),
        }
    }

    /// The most permits that there ever are: a larger weight never passes.
    pub fn most(&self) -> u64 {
        most(&self.0.source)
    }

    /// The largest weight that a call may name.
    pub fn max_weight(&self) -> u64 {
        self.0.max_weight.unwrap_or(CEILING - 1)
    }
}

fn most(source: &LimitSource) -> u64 {
    match source {
        LimitSource::Fixed(limit) => *limit,
        LimitSource::Adaptive(adaptive) => adaptive.max,
    }
}

fn check_adaptive(rule: &AdaptiveRule) -> Result<(), ConcurrencyError> {
    let AdaptiveRule { initial, min, max, .. } = rule;
    if *max == 0 || *max > MAX_ADAPTIVE_LIMIT {
        return Err(wrong("max", max, format!("is out of range: 1 to {MAX_ADAPTIVE_LIMIT}")));
    }
    if *min == 0 || min > max {
        return Err(wrong("min", min, format!("is out of range: 1 to `max`, which is {max}")));
    }
    if !(min..=max).contains(&initial) {
        let bound = format!("is out of range: `min` to `max`, which are {min} and {max}");
        return Err(wrong("initial", initial, bound));
    }
    Ok(())
}

fn wrong(field: &'static str, value: impl ToString, bound: String) -> ConcurrencyError {
    ConcurrencyError { field, value: value.to_string(), bound }
}
