//! Limit of a rule: requests per unit of time, and the algorithm that counts them.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, Invalid, Rate};
use weir_core::strategy::{
    ApproximateNumbers, FailurePolicy, Field, Limit, LocalError, NoApproximate, Owner, Scope, Strategy,
    StrategyError,
};
use weir_units::Micros;

/// Name of all rules' strategies. Their one limit is named by the unit, which so is a part of the counter's key:
/// limits of different units never share a counter.
pub const STRATEGY: &str = "envoy";

/// The units of time that Envoy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A second.
    Second,
    /// 60 seconds.
    Minute,
    /// 3,600 seconds.
    Hour,
    /// 86,400 seconds.
    Day,
    /// 7 days; they begin on Thursdays, as the epoch did.
    Week,
    /// 30 days.
    Month,
    /// 365 days.
    Year,
}

/// Algorithm of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// In windows that begin at multiples of their length: what the reference does.
    FixedWindow {
        /// True if denied requests are charged too.
        count_rejected: bool,
    },
    /// In a window that slides, estimated from two counters.
    SlidingWindow,
    /// In a window that slides, exactly.
    SlidingLog {
        /// True if denied requests are charged too.
        count_rejected: bool,
    },
    /// In a token bucket that refills evenly.
    Bucket {
        /// The most tokens in the bucket.
        burst: u64,
    },
    /// In a bucket that is refilled at once, every unit.
    IntervalRefill {
        /// The most tokens in the bucket.
        burst: u64,
    },
}

/// A limit with its numbers, and the strategy that decides it.
#[derive(Debug, Clone)]
pub struct RateLimit {
    requests_per_unit: u32,
    unit: Unit,
    unit_multiplier: u32,
    kind: Kind,
    bills: bool,
    /// The bound of the debt, if it was set.
    own_max_debt: Option<Option<u64>>,
    strategy: Arc<Strategy>,
}

impl Unit {
    /// All of them, from short to long.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// Name in files, in lower case; length in seconds; and number on Envoy's wire.
    const fn facts(self) -> (&'static str, u64, i32) {
        match self {
            Self::Second => ("second", 1, 1),
            Self::Minute => ("minute", 60, 2),
            Self::Hour => ("hour", 3_600, 3),
            Self::Day => ("day", 86_400, 4),
            Self::Week => ("week", 7 * 86_400, 7),
            Self::Month => ("month", 30 * 86_400, 5),
            Self::Year => ("year", 365 * 86_400, 6),
        }
    }

    /// Name of the unit, in lower case as in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// Length of the unit.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.facts().1
    }

    /// The unit that `name` is, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name().eq_ignore_ascii_case(name))
    }

    /// Number of the unit on Envoy's wire; 0 is no unit.
    #[must_use]
    pub const fn wire(self) -> i32 {
        self.facts().2
    }

    /// The unit of a number on Envoy's wire.
    #[must_use]
    pub fn of_wire(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.wire() == number)
    }
}

impl RateLimit {
    /// A limit of `requests_per_unit` in every `unit_multiplier` units. A limit of 0 denies everything,
    /// whatever its kind. Fields of errors: `unit_multiplier`, `burst`, `requests_per_unit`.
    pub fn new(
        requests_per_unit: u32,
        unit: Unit,
        unit_multiplier: u32,
        kind: Kind,
        on_store_failure: FailurePolicy,
    ) -> Result<Self, Invalid> {
        let period = Micros::from_secs(unit.seconds().saturating_mul(u64::from(unit_multiplier)));
        let algorithm = algorithm(u64::from(requests_per_unit), period, kind).map_err(in_our_words)?;
        // Where denied hits count, a bill counts in full; elsewhere its debt is bounded.
        let max_debt = (!algorithm.counts_denied()).then(|| algorithm.limit());
        let algorithm = algorithm.with_max_debt(max_debt);
        let name = match unit_multiplier {
            1 => unit.name().to_owned(),
            _ => format!("{}.{unit_multiplier}", unit.name()),
        };
        let scope = Scope::new(&[Field::Resource]);
        let limit = Limit { name: name.into(), scope, algorithm };
        let strategy = Strategy::new(STRATEGY, vec![limit], false, on_store_failure).map_err(unlikely)?;
        // The reference charges billed hits, and has fixed windows only.
        let bills = matches!(kind, Kind::FixedWindow { .. });
        Ok(Self {
            requests_per_unit,
            unit,
            unit_multiplier,
            kind,
            bills,
            own_max_debt: None,
            strategy: Arc::new(strategy),
        })
    }

    /// Sets if bills are charged above the limit. A bill is a descriptor's own `hits_addend`.
    #[must_use]
    pub const fn billing(mut self, bills: bool) -> Self {
        self.bills = bills;
        self
    }

    /// Bounds the debt by bills to `max_debt` above the limit; `None` is unbounded. By default it is at most the
    /// limit, and unbounded where denied hits count.
    #[must_use]
    pub fn with_max_debt(mut self, max_debt: Option<u64>) -> Self {
        let owned = Arc::unwrap_or_clone(self.strategy);
        self.strategy = Arc::new(owned.with_algorithms(|algorithm| algorithm.with_max_debt(max_debt)));
        self.own_max_debt = Some(max_debt);
        self
    }

    /// The same with what a node decides with by itself, if its failure policy says so.
    pub fn with_local(mut self) -> Result<Self, LocalError> {
        self.strategy = Arc::new(Arc::unwrap_or_clone(self.strategy).with_local()?);
        Ok(self)
    }

    /// The same, counted on the nodes within a bound. What changes its algorithm comes before.
    pub fn with_approximate(mut self, numbers: ApproximateNumbers) -> Result<Self, NoApproximate> {
        self.strategy = Arc::new(Arc::unwrap_or_clone(self.strategy).with_approximate(numbers)?);
        Ok(self)
    }

    /// Sets the owner of its keys.
    #[must_use]
    pub fn owned_by(mut self, owner: &Arc<Owner>) -> Self {
        self.strategy = Arc::new(Arc::unwrap_or_clone(self.strategy).owned_by(owner));
        self
    }

    /// Number of requests that pass per period.
    #[must_use]
    pub const fn requests_per_unit(&self) -> u32 {
        self.requests_per_unit
    }

    /// The unit of the period.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// Number of units in the period.
    #[must_use]
    pub const fn unit_multiplier(&self) -> u32 {
        self.unit_multiplier
    }

    /// Algorithm of the limit.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// True if a descriptor's own `hits_addend` is charged above the limit too.
    #[must_use]
    pub const fn bills(&self) -> bool {
        self.bills
    }

    /// The bound of the debt by bills, if it was set; `Some(None)` is unbounded.
    #[must_use]
    pub const fn own_max_debt(&self) -> Option<Option<u64>> {
        self.own_max_debt
    }

    /// The strategy: one limit with a counter per resource. Its failure policy is the rule's.
    #[must_use]
    pub const fn strategy(&self) -> &Arc<Strategy> {
        &self.strategy
    }
}

fn algorithm(requests: u64, period: Micros, kind: Kind) -> Result<Algorithm, Invalid> {
    match kind {
        // A bucket cannot refill by 0; any engine can deny everything.
        Kind::Bucket { .. } | Kind::IntervalRefill { .. } if requests == 0 => {
            Algorithm::fixed_window(0, period, false, false)
        }
        Kind::FixedWindow { count_rejected } => {
            Algorithm::fixed_window(requests, period, false, count_rejected)
        }
        Kind::SlidingWindow => Algorithm::sliding_window(requests, period),
        Kind::SlidingLog { count_rejected } => {
            Algorithm::strict_log(requests, period, count_rejected, Micros::ZERO)
        }
        Kind::Bucket { burst } => Algorithm::bucket(burst, Rate { count: requests, period }),
        Kind::IntervalRefill { burst } => Algorithm::interval_refill(burst, requests, period, true),
    }
}

/// The field as the files name it.
fn in_our_words(invalid: Invalid) -> Invalid {
    let field = match invalid.field {
        "window" | "rate" | "period" => "unit_multiplier",
        "burst" | "capacity" => "burst",
        _ => "requests_per_unit",
    };
    Invalid { field, ..invalid }
}

/// All names are ours and there is one limit, so this does not happen.
fn unlikely(error: StrategyError) -> Invalid {
    Invalid { field: "unit", value: String::new(), bound: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::algorithm::{LimitVerdict, Op, State, Verdict, VerdictSink, decide};

    #[derive(Default)]
    struct Levels(Vec<u64>);

    impl VerdictSink for Levels {
        fn limit(&mut self, verdict: LimitVerdict) {
            self.0.push(verdict.level_before);
        }

        fn all(&mut self, _: Verdict) {}
    }

    /// The level of a key after `before` charged hits and a bill of `hits`.
    fn billed(limit: &RateLimit, before: u64, hits: u64) -> u64 {
        let (mut state, mut levels) = (None::<State>, Levels::default());
        for (op, cost) in [(Op::Charge, before), (Op::Force, hits), (Op::Peek, 1)] {
            decide(limit.strategy().algorithms(), &mut state, op, cost, Micros::from_secs(60), &mut levels)
                .unwrap();
        }
        levels.0.pop().unwrap()
    }

    /// A bill of 7 once left 3 on a fresh key of a limit of 2, and 4 on one that was used up.
    #[test]
    fn a_bill_counts_in_full_where_denied_hits_count() {
        let limit = |count_rejected| {
            let kind = Kind::FixedWindow { count_rejected };
            RateLimit::new(2, Unit::Minute, 1, kind, FailurePolicy::Error).unwrap()
        };
        assert_eq!([billed(&limit(true), 0, 7), billed(&limit(true), 2, 7)], [7, 9]);
        let bounded = limit(true).with_max_debt(Some(10));
        assert_eq!([billed(&bounded, 0, 7), billed(&bounded, 2, 20)], [7, 12]);
        assert_eq!([billed(&limit(false), 0, 7), billed(&limit(false), 2, 7)], [4, 4]);
    }
}
