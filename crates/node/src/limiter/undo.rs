//! Taking back: a refund of what was charged, and a reset of what was counted.
//!
//! Neither is a decision, so no failure policy answers for the store: what could not be done is an error.

use weir_config::AccessRight;
use weir_core::algorithm::{LimitVerdict, Op};
use weir_core::strategy::{Field, Limit, Resolved, Strategy};
use weir_store::{LimitSet, Part, Store};

use super::{Limiter, LimiterError, Question, bounds};
use crate::telemetry::Rejection;

/// State of limits after something was taken back.
#[derive(Debug, Clone)]
pub struct Undone<'a> {
    /// False when this refund had been made before.
    pub applied: bool,
    /// The limits that were meant, in the order of the strategy.
    pub limits: Vec<(&'a Limit, LimitVerdict)>,
}

impl<S: Store> Limiter<S> {
    /// Gives the cost back to the limits that are named, or to all; under an `id`, only once.
    pub async fn refund<'a>(
        &'a self,
        question: &'a Question<'_>,
        limits: &[String],
        id: &str,
    ) -> Result<Undone<'a>, LimiterError> {
        let resolved = self.resolve(AccessRight::Refund, question)?;
        let limits = self.counted(check_refund(question, resolved.strategy, limits, id))?;
        self.undo(question, &resolved, Op::Refund, Part { limits, id }).await
    }

    /// Forgets what the limits that are named have counted, or those that count by consumer.
    pub async fn reset<'a>(
        &'a self,
        question: &'a Question<'_>,
        limits: &[String],
    ) -> Result<Undone<'a>, LimiterError> {
        let resolved = self.resolve(AccessRight::Reset, question)?;
        let limits = self.counted(check_reset(resolved.strategy, limits))?;
        self.undo(question, &resolved, Op::Reset, Part { limits, id: "" }).await
    }

    fn counted<T>(&self, checked: Result<T, LimiterError>) -> Result<T, LimiterError> {
        checked.inspect_err(|_| self.recorder.rejected(Rejection::Invalid))
    }

    async fn undo<'a>(
        &self,
        question: &Question<'_>,
        resolved: &Resolved<'a>,
        op: Op,
        part: Part<'_>,
    ) -> Result<Undone<'a>, LimiterError> {
        // What nodes count is undone as where no limit has a cost of its own.
        let is_counted = resolved.strategy.approximate().is_some();
        if let Some(costed) = resolved.strategy.costed().filter(|_| !is_counted) {
            let part = (part.limits, part.id);
            return self.undo_costs(question, (resolved, costed), part, op == Op::Reset).await;
        }
        let (verdict, verdicts) = self.change(question, resolved, op, Some(&part)).await?;
        // While the store cannot answer, the node gives back to its own, smaller limits.
        let local = resolved.strategy.local().filter(|_| verdicts.local.is_some());
        let strategy = local.map_or(resolved.strategy, |local| local.strategy());
        let limits = strategy.limits().iter().enumerate();
        let limits = limits.filter(|(index, _)| part.limits.has(*index)).map(|(_, limit)| limit);
        Ok(Undone { applied: verdict.granted > 0, limits: limits.zip(verdicts.limits).collect() })
    }
}

fn check_refund(
    question: &Question<'_>,
    strategy: &Strategy,
    names: &[String],
    id: &str,
) -> Result<LimitSet, LimiterError> {
    bounds::check_refund(question.cost, id)?;
    let is_named = strategy.costed().is_some_and(|costed| !costed.names.is_empty());
    if is_named && names.is_empty() {
        return Err(bounds::unnamed_refund(strategy).into());
    }
    let limits = if names.is_empty() { LimitSet::ALL } else { named(strategy, names)? };
    let denied = |(index, limit): &(usize, &Limit)| limits.has(*index) && limit.algorithm.counts_denied();
    match strategy.limits().iter().enumerate().find(denied) {
        Some((_, limit)) => Err(LimiterError::Unsupported(format!(
            "limit `{}` of strategy `{}` counts denied attempts (`count_denied`), so nothing can be given \
             back to it; name the limits that are meant",
            limit.name,
            strategy.name()
        ))),
        None => Ok(limits),
    }
}

fn check_reset(strategy: &Strategy, names: &[String]) -> Result<LimitSet, LimiterError> {
    if !names.is_empty() {
        return named(strategy, names);
    }
    let limits = strategy.limits().iter().enumerate();
    let by_consumer = limits.filter(|(_, limit)| limit.scope.has(Field::Consumer));
    let set = by_consumer.fold(LimitSet::NONE, |set, (index, _)| set.with(index));
    if set == LimitSet::NONE {
        return Err(bounds::no_limit_by_consumer(strategy).into());
    }
    Ok(set)
}

fn named(strategy: &Strategy, names: &[String]) -> Result<LimitSet, LimiterError> {
    let place = |name: &String| strategy.limits().iter().position(|limit| *limit.name == **name);
    let unknown: Vec<&str> = names.iter().filter(|name| place(name).is_none()).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Err(bounds::unknown_limits(strategy, &unknown).into());
    }
    Ok(names.iter().filter_map(place).fold(LimitSet::NONE, LimitSet::with))
}
