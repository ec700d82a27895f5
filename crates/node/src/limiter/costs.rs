//! Named costs and holds of a question.

use smallvec::SmallVec;
use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, CostError, CostedLimits, HoldError, LimitCost, NamedAsk, SettledCosts,
};
use weir_core::algorithm::{MAX_LIMITS, Op};
use weir_core::strategy::Strategy;
use weir_units::{CEILING, Micros};

use super::bounds::{self, check_needed_id, shown};
use super::{InvalidField, LimiterError, NamedCost, Question, Shaping};

/// Checks the optional fields of a question, named costs and a hold among them. Nothing is ignored: a cost that no limit
/// takes, and a hold that nobody keeps, are errors.
#[cold]
pub(super) fn check_shaping(question: &Question<'_>, strategy: &Strategy) -> Result<(), LimiterError> {
    bounds::check_shaping(question, strategy)?;
    let Some(shaping) = question.shaping.as_deref() else { return Ok(()) };
    check_at_most(shaping, strategy)?;
    hold_for(question, shaping)?;
    if strategy.costed().is_some() {
        return Ok(());
    }
    check_names(shaping, strategy)?;
    match shaping.hold_for {
        Some(_) => Err(no_holds(strategy)),
        None => Ok(()),
    }
}

/// The cost of a question that is decided as one without costs by limit: of a reservation, and of a limit that nodes count.
/// Neither has named costs.
#[cold]
pub(super) fn plain_cost<'q>(
    question: &'q Question<'_>,
    strategy: &Strategy,
    costed: &'q CostedLimits,
) -> Result<Option<&'q u64>, LimiterError> {
    let reserves = matches!(question.op(), Op::Reserve { .. });
    if !reserves && strategy.approximate().is_none() {
        return Ok(None);
    }
    let unsupported = |why: &str| {
        let name = strategy.name();
        Err(LimiterError::Unsupported(format!("strategy `{name}` {why}; ask ShouldAllow with hold_for")))
    };
    match &*costed.limits {
        _ if !costed.names.is_empty() => unsupported("has named costs, and no reservations"),
        [BudgetLimit { cost: LimitCost::Fixed(cost), .. }] => Ok(Some(cost)),
        // What is held does not drain while a reservation waits, so calls could start above the limit.
        limits if costed.hold.is_some() && limits.iter().any(BudgetLimit::holds) => {
            unsupported("has a limit that calls hold, which takes no reservations")
        }
        _ => Ok(Some(&question.cost)),
    }
}

/// Returns the costs that a question asks of limits with costs of their own.
#[cold]
pub(super) fn ask(
    question: &Question<'_>,
    strategy: &Strategy,
    costed: &CostedLimits,
) -> Result<Ask, LimiterError> {
    let shaping = question.shaping.as_deref();
    let asked = |cost: &NamedCost<'_>| AskedCost { cost: cost.cost, at_least: cost.at_least };
    let named: SmallVec<[NamedAsk<'_>; MAX_LIMITS]> = shaping
        .map(|shaping| shaping.costs.iter().map(|cost| (cost.name, asked(cost))).collect())
        .unwrap_or_default();
    let ask = Ask {
        costs: costed.costs(&named).map_err(|error| {
            invalid(error, strategy, costed, shaping.map(|shaping| &*shaping.costs).unwrap_or_default())
        })?,
        cost: question.cost,
        peek: question.peek,
        has_id: !question.id().is_empty(),
        hold_for: shaping.map(|shaping| hold_for(question, shaping)).transpose()?.flatten(),
    };
    match costed.check_hold(&ask) {
        Ok(()) => Ok(ask),
        Err(HoldError::NoHolds) => Err(no_holds(strategy)),
        Err(error) => Err(invalid_hold(error, ask.hold_for.unwrap_or_default()).into()),
    }
}

/// Returns the costs that a shadow is asked for: those of its live strategy that it names. `None` if the question has none
/// of them.
pub(super) fn ask_of_shadow(question: &Question<'_>, costed: &CostedLimits) -> Option<Ask> {
    let given = question.shaping.as_deref().map(|shaping| &*shaping.costs).unwrap_or_default();
    let find = |name: &str| given.iter().find(|cost| cost.name == name);
    let asked = |name: &str| find(name).map(|cost| AskedCost { cost: cost.cost, at_least: cost.at_least });
    (question.op() == Op::Charge).then_some(())?;
    Some(Ask {
        costs: costed.names.iter().map(|name| asked(name)).collect::<Option<_>>()?,
        cost: question.cost,
        peek: false,
        has_id: !question.id().is_empty(),
        hold_for: None,
    })
}

/// Returns the units that were really used, by name. `cost` is for limits without `cost:`.
pub(super) fn used(
    shaping: &Shaping<'_>,
    cost: Option<u64>,
    strategy: &Strategy,
    costed: &CostedLimits,
) -> Result<SettledCosts, LimiterError> {
    if cost.is_some_and(|cost| cost >= CEILING) {
        let (value, bound) = (cost.unwrap_or_default().to_string(), "it must be below 2^52".to_owned());
        return Err(InvalidField { field: "cost", value, bound }.into());
    }
    let named: SmallVec<[(&str, u64); MAX_LIMITS]> =
        shaping.costs.iter().map(|cost| (cost.name, cost.cost)).collect();
    costed.some_costs(&named, cost).map_err(|error| invalid(error, strategy, costed, &shaping.costs).into())
}

/// Checks the names of the costs, of a strategy that has none.
pub(super) fn check_names(shaping: &Shaping<'_>, strategy: &Strategy) -> Result<(), InvalidField> {
    if shaping.costs.is_empty() || strategy.costed().is_some() {
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

/// The error about one of the costs that were `given`.
fn invalid(
    error: CostError<'_>,
    strategy: &Strategy,
    costed: &CostedLimits,
    given: &[NamedCost<'_>],
) -> InvalidField {
    let given = |name: &str| given.iter().find(|cost| cost.name == name);
    let names = || costed.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (value, bound) = match error {
        CostError::Unknown(name) if costed.names.is_empty() => {
            (quoted(name), format!("strategy `{}` has no named costs; use `cost`", strategy.name()))
        }
        CostError::Unknown(name) => {
            (quoted(name), format!("strategy `{}` has only {}", strategy.name(), names()))
        }
        CostError::Missing(name) => (
            format!("without \"{name}\""),
            format!(
                "strategy `{}` needs {}: a forgotten cost is no free call, write 0",
                strategy.name(),
                names()
            ),
        ),
        CostError::TooLarge(name) => {
            let cost = given(name).map_or(CEILING, |given| given.cost);
            (format!("{} of {cost}", quoted(name)), "it must be below 2^52".to_owned())
        }
        CostError::AtLeast(name) => {
            let (cost, least) = given(name).map_or((0, 0), |given| (given.cost, given.at_least.unwrap_or(0)));
            let value = format!("{} of {cost} with at_least {least}", quoted(name));
            (value, "at_least must be 1 to the cost".to_owned())
        }
    };
    InvalidField { field: "costs", value, bound }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", shown(name))
}

fn invalid_hold(error: HoldError, hold_for: Micros) -> InvalidField {
    let bound = match error {
        HoldError::TooLong(most) => format!("it must be at most {most}, the `max` of `hold`"),
        HoldError::Peek => "it cannot stand beside peek, which charges nothing".to_owned(),
        HoldError::NoId => "it needs an id, under which the call is settled".to_owned(),
        HoldError::Zero | HoldError::NoHolds => "it must be at least 1us".to_owned(),
    };
    InvalidField { field: "hold_for", value: hold_for.to_string(), bound }
}

fn check_at_most(shaping: &Shaping<'_>, strategy: &Strategy) -> Result<(), InvalidField> {
    let beside = match shaping {
        Shaping { at_most: false, .. } => return Ok(()),
        Shaping { hold_for: Some(_), .. } => "hold_for",
        Shaping { costs, .. } if !costs.is_empty() => "costs",
        _ if strategy.costed().is_some() => "`cost` or `hold` of the strategy",
        _ => return Ok(()),
    };
    let bound = format!("it cannot stand beside {beside}; `at_least` of a cost grants what fits");
    Err(InvalidField { field: "at_most", value: "true".to_owned(), bound })
}

fn hold_for(question: &Question<'_>, shaping: &Shaping<'_>) -> Result<Option<Micros>, InvalidField> {
    let Some((seconds, nanos)) = shaping.hold_for else { return Ok(None) };
    let invalid = |bound: &str| {
        let (value, bound) = (format!("{seconds} s and {nanos} ns"), bound.to_owned());
        Err(InvalidField { field: "hold_for", value, bound })
    };
    if question.peek {
        return invalid("it cannot stand beside peek, which charges nothing");
    }
    let (Ok(whole), Ok(rest @ 0..1_000_000_000)) = (u64::try_from(seconds), u64::try_from(nanos)) else {
        return invalid("it must be at least 1us, and have less than 10^9 ns");
    };
    if (whole, rest / 1_000) == (0, 0) {
        return invalid("it must be at least 1us, and have less than 10^9 ns");
    }
    check_needed_id(question.id())?;
    Ok(Some(Micros(whole.saturating_mul(1_000_000).saturating_add(rest / 1_000))))
}
