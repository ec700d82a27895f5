//! The costs by name of a question, for its line in the decision log.

use weir_units::Micros;

use super::{Question, Shaping};
use crate::telemetry::LoggedCosts;

pub(super) fn asked(question: &Question<'_>) -> Option<LoggedCosts> {
    let shaping = question.shaping.as_deref()?;
    let has_some = !shaping.costs.is_empty() || shaping.hold_for.is_some();
    has_some.then(|| with_shaping(Some(shaping)))
}

/// Creates the used costs, also if no cost is named: the others count as granted then.
pub(super) fn used(question: &Question<'_>) -> LoggedCosts {
    with_shaping(question.shaping.as_deref())
}

fn with_shaping(shaping: Option<&Shaping<'_>>) -> LoggedCosts {
    let costs = shaping.map(|shaping| &*shaping.costs).unwrap_or_default();
    let costs = costs.iter().map(|cost| (cost.name.into(), cost.cost, cost.at_least)).collect();
    LoggedCosts::new(costs, shaping.and_then(|shaping| shaping.hold_for).and_then(micros))
}

/// A checked span, rounded down to the microsecond.
fn micros((seconds, nanos): (i64, i32)) -> Option<Micros> {
    let (seconds, nanos) = (u64::try_from(seconds).ok()?, u64::try_from(nanos).ok()?);
    Some(Micros(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000)))
}
