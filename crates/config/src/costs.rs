//! Costs of limits, and `hold` of a strategy: token budgets.

use weir_core::algorithm::budget::{
    BudgetLimit, CostedLimits, HoldBounds, LimitCost, MAX_COST_NAMES, NotHeld,
};
use weir_core::strategy::Strategy;
use weir_units::{CEILING, Micros};

use super::errors::MistakeReport;
use super::fields::{KeyedValue, Mapping, NamedNode};
use super::quantities::duration_within;
use super::values::{Scalar, choice, integer, quote, text_within, within};

/// The longest name of a cost, in bytes.
pub(super) const MAX_COST_NAME: usize = 64;
/// The longest unit, in characters.
pub(super) const MAX_UNIT: usize = 32;

const SHORTEST_HOLD: Micros = Micros::from_secs(1);
const LONGEST_HOLD: Micros = Micros::from_secs(3_600);
const SHORTEST_KNOWN: Micros = Micros::from_secs(60);
const LONGEST_KNOWN: Micros = Micros::from_secs(24 * 3_600);
const KNOWN_FOR: Micros = Micros::from_secs(3_600);

/// The cost that a limit takes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CostOf {
    Number(u64),
    Name(String),
}

/// The keys of a limit about its cost.
#[derive(Default)]
pub(super) struct LimitCostKeys<'t> {
    cost: Option<CostOf>,
    at_once: Option<NamedNode<'t>>,
    near_percent: Option<u8>,
    unit: Box<str>,
}

/// `hold` of a strategy, and where it was written.
pub(super) struct HoldKey<'t> {
    entry: Option<KeyedValue<'t>>,
    bounds: Option<HoldBounds>,
    shadows: bool,
}

impl<'t> LimitCostKeys<'t> {
    /// Takes the keys of a limit.
    pub(super) fn take(fields: &mut Mapping<'t>, report: &mut MistakeReport) -> Self {
        let cost = fields.read("cost", report, cost);
        let charge = fields.take("charge");
        let words = [("at_once", true), ("when_settled", false)];
        let at_once = charge.filter(|value| value.read(report, |s| choice(s, &words)) == Some(true));
        let near_percent = fields.read("near_limit", report, percent);
        let unit = fields.read("unit", report, |s| text_within(s, MAX_UNIT)).unwrap_or_default();
        Self { cost, at_once, near_percent, unit: unit.into() }
    }
}

impl<'t> HoldKey<'t> {
    /// Takes the key of a strategy, which may have shadows.
    pub(super) fn take(fields: &mut Mapping<'t>, shadows: bool, report: &mut MistakeReport) -> Self {
        let entry = fields.take_entry("hold");
        let bounds = entry.as_ref().and_then(|entry| {
            let mut keys = Mapping::new(&entry.value, report);
            let max = keys.require("max", "say how long a hold lasts at most, such as 10m", report);
            let max = max.and_then(|v| v.read(report, |s| duration_within(s, SHORTEST_HOLD, LONGEST_HOLD)));
            let known = keys.read("known_for", report, |s| duration_within(s, SHORTEST_KNOWN, LONGEST_KNOWN));
            keys.finish(report);
            Some(HoldBounds { max: max?, known_for: known.unwrap_or(KNOWN_FOR) })
        });
        Self { entry, bounds, shadows }
    }

    /// `strategy` with the costs of its limits, which were written at `places`. Reports why it cannot have them.
    pub(super) fn checked(
        &self,
        strategy: Strategy,
        keys: &[LimitCostKeys<'t>],
        places: &[NamedNode<'t>],
        report: &mut MistakeReport,
    ) -> Option<Strategy> {
        let near = keys.iter().map(|keys| keys.near_percent).collect();
        let units = keys.iter().map(|keys| keys.unit.clone()).collect();
        let strategy = strategy.with_marks(near, units);
        let has_cost = keys.iter().any(|keys| keys.cost.is_some());
        let before = report.len();
        for at_once in keys.iter().filter_map(|keys| keys.at_once.as_ref()).filter(|_| self.entry.is_none()) {
            at_once.report(
                report,
                "is for calls that are held; add `hold: { max: 10m }` to the strategy, or remove it",
            );
        }
        if !has_cost && self.entry.is_none() {
            return (report.len() == before).then_some(strategy);
        }
        let names = names(keys);
        if let Some(place) = places.first().filter(|_| names.len() > MAX_COST_NAMES) {
            let count = names.len();
            place.report(
                report,
                format!("the limits have {count} names of costs; at most {MAX_COST_NAMES} fit"),
            );
        }
        let place = places.first().filter(|_| !names.is_empty());
        self.check_neighbours(&strategy, place, report);
        let limits = keys.iter().zip(strategy.algorithms()).zip(places).map(|((keys, algorithm), place)| {
            let cost = match &keys.cost {
                None => LimitCost::Request,
                Some(CostOf::Number(cost)) => LimitCost::Fixed(*cost),
                Some(CostOf::Name(name)) => {
                    LimitCost::Named(names.iter().position(|known| known == name).unwrap_or_default())
                }
            };
            let at_once = keys.at_once.is_some();
            // `near_limit` of the marks follows.
            let limit = BudgetLimit { algorithm: *algorithm, cost, at_once, near_percent: None };
            if let Err(why) = limit.check_held(self.entry.is_some()) {
                place.report(report, not_held(why));
            }
            limit
        });
        let limits = limits.collect();
        if report.len() > before || self.entry.is_some() != self.bounds.is_some() {
            return None;
        }
        let names = names.into_iter().map(String::into_boxed_str).collect();
        Some(strategy.with_costs(CostedLimits { limits, names, hold: self.bounds }))
    }

    /// Reports what cannot stand beside a hold, or beside named costs, whose first limit is at `place`.
    fn check_neighbours(
        &self,
        strategy: &Strategy,
        place: Option<&NamedNode<'t>>,
        report: &mut MistakeReport,
    ) {
        let reason =
            |what: &str, beside: &str| format!("{what} cannot stand beside `{beside}`; remove one of them");
        let is_counted = strategy.approximate().is_some();
        let Some(entry) = &self.entry else {
            if let Some(place) = place.filter(|_| is_counted) {
                place.report(report, reason("a named cost", "approximate"));
            }
            return;
        };
        for (beside, is_there) in [("approximate", is_counted), ("shadow", self.shadows)] {
            if is_there {
                entry.report(report, reason("a hold", beside));
            }
        }
    }
}

/// The names of the costs, in the order of the limits.
fn names(keys: &[LimitCostKeys<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for keys in keys {
        if let Some(CostOf::Name(name)) = &keys.cost
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names
}

fn cost(scalar: Scalar<'_>) -> Result<CostOf, String> {
    let text = scalar.text;
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') && !text.is_empty() {
        return within(integer(scalar)?, 0, CEILING - 1).map(CostOf::Number);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    // Who writes -1 or 1.5 means no name.
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    if !has_letter || text.len() > MAX_COST_NAME || !text.bytes().all(is_plain) {
        return Err(format!(
            "{} is no cost: write a whole number, or a name of 1 to {MAX_COST_NAME} of A-Z a-z 0-9 . _ - with a letter",
            quote(text)
        ));
    }
    Ok(CostOf::Name(text.to_owned()))
}

/// Reads `near_limit`.
pub(super) fn percent(scalar: Scalar<'_>) -> Result<u8, String> {
    let digits = scalar.text.strip_suffix('%').filter(|digits| !digits.starts_with(['+', '0']));
    match digits.and_then(|digits| digits.parse::<u8>().ok()) {
        Some(percent @ 1..=100) => Ok(percent),
        _ => Err(format!("{} is no part of a limit: write 1% to 100%, such as 80%", quote(scalar.text))),
    }
}

fn not_held(why: NotHeld) -> String {
    format!(
        "cannot be held, because {why}; give this limit a fixed cost, such as `cost: 1`, or remove `hold` of the strategy"
    )
}
