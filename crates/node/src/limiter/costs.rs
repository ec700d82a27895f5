//! Named costs and holds of a question: the refusals that depend on its strategy.

use weir_core::algorithm::MAX_LIMITS;
use weir_core::strategy::Strategy;

use super::bounds::{self, check_needed_id, shown};
use super::{InvalidField, LimiterError, NamedCost, Question, Shaping};

/// Checks the optional fields of a question, named costs and a hold among them. Nothing is ignored: a cost that no limit
/// takes, and a hold that nobody keeps, are errors.
#[cold]
pub(super) fn check_shaping(question: &Question<'_>, strategy: &Strategy) -> Result<(), LimiterError> {
    bounds::check_shaping(question, strategy)?;
    let Some(shaping) = question.shaping.as_deref() else { return Ok(()) };
    check_at_most(shaping)?;
    check_hold(question, shaping)?;
    check_names(shaping, strategy)?;
    match shaping.hold_for {
        Some(_) => Err(no_holds(strategy)),
        None => Ok(()),
    }
}

/// Checks the names of the costs.
pub(super) fn check_names(shaping: &Shaping<'_>, strategy: &Strategy) -> Result<(), InvalidField> {
    if shaping.costs.is_empty() {
        return Ok(());
    }
    let quoted = |cost: &NamedCost<'_>| format!("\"{}\"", shown(cost.name));
    let unknown: Vec<String> = shaping.costs.iter().take(MAX_LIMITS).map(quoted).collect();
    let bound = format!("strategy `{}` has no named costs; use `cost`", strategy.name());
    Err(InvalidField { field: "costs", value: unknown.join(", "), bound })
}

/// Error for a hold or a settlement under a strategy without holds.
pub(super) fn no_holds(strategy: &Strategy) -> LimiterError {
    LimiterError::Unsupported(format!(
        "strategy `{}` has no `hold`, so none of its calls is held",
        strategy.name()
    ))
}

fn check_at_most(shaping: &Shaping<'_>) -> Result<(), InvalidField> {
    let beside = match shaping {
        Shaping { at_most: false, .. } => return Ok(()),
        Shaping { hold_for: Some(_), .. } => "hold_for",
        Shaping { costs, .. } if !costs.is_empty() => "costs",
        _ => return Ok(()),
    };
    let bound = format!("it cannot stand beside {beside}; `at_least` of a cost grants what fits");
    Err(InvalidField { field: "at_most", value: "true".to_owned(), bound })
}

fn check_hold(question: &Question<'_>, shaping: &Shaping<'_>) -> Result<(), InvalidField> {
    let Some((seconds, nanos)) = shaping.hold_for else { return Ok(()) };
    let invalid = |bound: &str| {
        let (value, bound) = (format!("{seconds} s and {nanos} ns"), bound.to_owned());
        Err(InvalidField { field: "hold_for", value, bound })
    };
    if question.peek {
        return invalid("it cannot stand beside peek, which charges nothing");
    }
    if seconds < 0 || !(0..1_000_000_000).contains(&nanos) || (seconds, nanos / 1_000) == (0, 0) {
        return invalid("it must be at least 1us, and have less than 10^9 ns");
    }
    check_needed_id(question.id())
}
