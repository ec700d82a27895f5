//! The explanation of costs by limit and of holds, as text and as JSON.

use serde_json::{Value, json};
use weir_core::algorithm::budget::{CostedLimits, LimitCost};
use weir_core::strategy::Strategy;

use weir_units::Micros;

use super::algorithm::{for_people, span};
use super::redis_size::string_size;

/// Numbers of a record of a hold, and of each limit without a fixed cost in it.
const RECORD: usize = 7;
const RECORD_LIMIT: usize = 6;

/// The rate at which the memory of records is told.
const HOLDS_A_SECOND: u64 = 1_000;

/// Returns one sentence each for the length of holds, a holder that dies, the guarantee and the ids. `key` is the length of
/// the key of a record.
pub(super) fn lines(costed: &CostedLimits, key: usize) -> Vec<String> {
    let Some(hold) = costed.hold else { return Vec::new() };
    let (max, grain) = (hold.max.0, hold.grain());
    let record = record_size(costed, key);
    let records = (record as u64).saturating_mul(HOLDS_A_SECOND).saturating_mul(hold.known_for.0 / 1_000_000);
    vec![
        format!("for at most {}, ending at multiples of {}", span(max), span(grain)),
        "what is used and held is never together above an enforced limit; only a use above the grant, and late or unknown \
         settlements, may exceed it, up to `max_debt`"
            .to_owned(),
        format!("what a caller that dies holds is free again after at most {}", for_people(Micros(max.saturating_add(grain)))),
        format!(
            "ids are known for {}: about {record} bytes each on Redis, {} MiB at {HOLDS_A_SECOND} holds a second",
            span(hold.known_for.0),
            records.div_ceil(1 << 20)
        ),
    ]
}

/// Returns the cost that a limit takes of a call, and the time of it; empty if the limit has no cost of its own.
pub(super) fn of_limit(strategy: &Strategy, place: usize) -> String {
    let cost = strategy.costed().and_then(|costed| {
        let limit = costed.limits.get(place)?;
        let what = match limit.cost {
            LimitCost::Request => "the request's `cost`".to_owned(),
            LimitCost::Fixed(units) => format!("always {units}"),
            LimitCost::Named(_) => format!("`{}` of the request", name(costed, place)?),
        };
        let when = match costed.hold {
            None => "",
            Some(_) if limit.is_fixed() => ", charged at once, also by a hold",
            Some(_) if limit.at_once => ", charged at once; a settlement charges what is above that",
            Some(_) => ", held until it is settled",
        };
        Some(format!("{what}{when}"))
    });
    let marks = strategy.marks();
    let unit = marks.and_then(|marks| marks.units.get(place)).filter(|unit| !unit.is_empty());
    let unit = unit.map(|unit| format!("in {unit}"));
    let near = percent(strategy, place).map(|percent| format!("near its limit from {percent}% on"));
    cost.into_iter().chain(unit).chain(near).collect::<Vec<_>>().join("; ")
}

/// Adds to what JSON says of a limit.
pub(super) fn add_to(said: &mut Value, strategy: &Strategy, place: usize) {
    if let Some((costed, limit)) = strategy.costed().and_then(|all| Some((all, all.limits.get(place)?))) {
        said["cost"] = match limit.cost {
            LimitCost::Request => Value::Null,
            LimitCost::Fixed(units) => units.into(),
            LimitCost::Named(_) => name(costed, place).into(),
        };
        said["charge"] = if limit.at_once { "at_once" } else { "when_settled" }.into();
    }
    if let Some(marks) = strategy.marks() {
        said["unit"] = marks.units.get(place).filter(|unit| !unit.is_empty()).map(|unit| &**unit).into();
        said["near_percent"] = percent(strategy, place).into();
    }
}

/// `hold` for JSON.
pub(super) fn value(strategy: &Strategy) -> Option<Value> {
    let hold = strategy.costed()?.hold?;
    Some(json!({ "max_us": hold.max.0, "known_for_us": hold.known_for.0, "grain_us": hold.grain() }))
}

fn name(costed: &CostedLimits, place: usize) -> Option<&str> {
    match costed.limits.get(place)?.cost {
        LimitCost::Named(name) => costed.names.get(name).map(|name| &**name),
        LimitCost::Request | LimitCost::Fixed(_) => None,
    }
}

fn percent(strategy: &Strategy, place: usize) -> Option<u8> {
    strategy.marks()?.near_percent(place)
}

fn record_size(costed: &CostedLimits, key: usize) -> usize {
    let limits = costed.limits.iter().filter(|limit| !limit.is_fixed()).count();
    string_size(key, 8 * (RECORD + RECORD_LIMIT * limits))
}
