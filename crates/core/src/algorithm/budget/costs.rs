//! Asked costs by name, checked against the names of the strategy.

use smallvec::SmallVec;
use weir_units::{CEILING, Micros};

use super::{CostedLimits, LimitCost, MAX_COST_NAMES};

/// A cost that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedCost {
    /// The units.
    pub cost: u64,
    /// The least that may be granted instead.
    pub at_least: Option<u64>,
}

/// A cost with its name.
pub type NamedAsk<'a> = (&'a str, AskedCost);

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The costs, in the order of the strategy's names.
    pub costs: SmallVec<[AskedCost; MAX_COST_NAMES]>,
    /// The cost of limits that take the request's.
    pub cost: u64,
    /// True if nothing is charged.
    pub peek: bool,
    /// True if it has an id.
    pub has_id: bool,
    /// Time for which to hold what is granted.
    pub hold_for: Option<Micros>,
}

/// The real use of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledCosts {
    /// The costs that are named, in the order of the strategy's names.
    pub costs: SmallVec<[Option<u64>; MAX_COST_NAMES]>,
    /// Cost of limits that take the request's.
    pub cost: Option<u64>,
}

/// A cost that breaks its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostError<'a> {
    /// The strategy has no such name.
    Unknown(&'a str),
    /// A name is missing.
    Missing(&'a str),
    /// The cost of this name is 2^52 or more.
    TooLarge(&'a str),
    /// `at_least` of this name is 0, or above its cost.
    AtLeast(&'a str),
}

/// A hold that cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldError {
    /// A hold stands beside a peek.
    Peek,
    /// The hold has no id.
    NoId,
    /// The hold has no length.
    Zero,
    /// The hold is longer than the strategy allows.
    TooLong(Micros),
    /// The strategy has no holds.
    NoHolds,
}

impl CostedLimits {
    /// Checks the hold of a question.
    pub fn check_hold(&self, asked: &Ask) -> Result<(), HoldError> {
        let Some(hold_for) = asked.hold_for else { return Ok(()) };
        match self.hold {
            _ if asked.peek => Err(HoldError::Peek),
            _ if !asked.has_id => Err(HoldError::NoId),
            _ if hold_for == Micros::ZERO => Err(HoldError::Zero),
            Some(bounds) if hold_for > bounds.max => Err(HoldError::TooLong(bounds.max)),
            Some(_) => Ok(()),
            None => Err(HoldError::NoHolds),
        }
    }

    /// The costs of a question: each name once.
    pub fn costs<'a>(
        &'a self,
        named: &[NamedAsk<'a>],
    ) -> Result<SmallVec<[AskedCost; MAX_COST_NAMES]>, CostError<'a>> {
        for (name, asked) in named {
            let AskedCost { cost, at_least } = *asked;
            self.check(name, cost)?;
            if at_least.is_some_and(|least| least == 0 || least > cost) {
                return Err(CostError::AtLeast(name));
            }
        }
        let find = |name: &'a str| named.iter().find(|(known, _)| *known == name).map(|(_, asked)| *asked);
        self.names.iter().map(|name| find(name).ok_or(CostError::Missing(name))).collect()
    }

    /// The costs of a settlement or a debit: some of the names.
    pub fn some_costs<'a>(
        &self,
        named: &[(&'a str, u64)],
        cost: Option<u64>,
    ) -> Result<SettledCosts, CostError<'a>> {
        for (name, cost) in named {
            self.check(name, *cost)?;
        }
        let find = |name: &str| named.iter().find(|(known, _)| *known == name).map(|(_, cost)| *cost);
        Ok(SettledCosts { costs: self.names.iter().map(|name| find(name)).collect(), cost })
    }

    fn check<'a>(&self, name: &'a str, cost: u64) -> Result<(), CostError<'a>> {
        if !self.names.iter().any(|known| **known == *name) {
            return Err(CostError::Unknown(name));
        }
        if cost >= CEILING { Err(CostError::TooLarge(name)) } else { Ok(()) }
    }
}

impl Ask {
    /// Returns the cost that a limit is asked for.
    pub fn of(&self, cost: LimitCost) -> AskedCost {
        let plain = |cost: u64| AskedCost { cost: cost.min(CEILING), at_least: None };
        match cost {
            LimitCost::Request => plain(self.cost),
            LimitCost::Fixed(cost) => plain(cost),
            LimitCost::Named(name) => self.costs.get(name).copied().unwrap_or(plain(0)),
        }
    }

    /// A digest of 52 bits of what makes two questions the same: their costs.
    pub fn digest(&self) -> u64 {
        let named = self.costs.iter().flat_map(|asked| [asked.cost, asked.at_least.unwrap_or(0)]);
        digest(std::iter::once(self.cost).chain(named))
    }
}

impl SettledCosts {
    /// The use of a limit, if it is named.
    pub fn of(&self, cost: LimitCost) -> Option<u64> {
        match cost {
            LimitCost::Request => self.cost.map(|cost| cost.min(CEILING)),
            LimitCost::Fixed(_) => None,
            LimitCost::Named(name) => self.costs.get(name).copied().flatten(),
        }
    }

    /// A digest of 52 bits of what makes two settlements the same.
    pub fn digest(&self) -> u64 {
        // One more than a cost, so that 0 is another one than none.
        let number = |cost: &Option<u64>| cost.map_or(0, |cost| cost.saturating_add(1));
        digest(std::iter::once(number(&self.cost)).chain(self.costs.iter().map(number)))
    }
}

/// A digest of 52 bits, of numbers whose count is the same for a strategy (the steps are those of SplitMix64).
fn digest(numbers: impl Iterator<Item = u64>) -> u64 {
    let mix = |sum: u64, number: u64| {
        let mut mixed = (sum ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    numbers.fold(0, mix) >> 12
}
