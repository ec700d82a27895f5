//! Recent use: the sum over the newest parts of a bucketed window.
//!
//! This is no decision, so the failure policy does not apply: a failed store is an error.

use weir_config::AccessRight;
use weir_core::algorithm::{Engine, Op, Slots};
use weir_core::strategy::Strategy;
use weir_store::{Decision, LimitSet, Part, Store, no_verdict};
use weir_time::clock;
use weir_units::Micros;

use super::{Limiter, LimiterError, Question, bounds};
use crate::telemetry::Rejection;

/// Use in the newest parts of a bucketed window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedParts {
    /// Sum of the charges in these parts.
    pub used: u64,
    /// Time since the oldest of these parts began.
    pub span: Micros,
}

impl<S: Store> Limiter<S> {
    /// Counts what limit `name` has charged in the newest parts that cover the last `interval`, which is at most its window.
    pub async fn count(
        &self,
        question: &Question<'_>,
        name: &str,
        interval: Micros,
    ) -> Result<CountedParts, LimiterError> {
        let resolved = self.resolve(AccessRight::Decide, question)?;
        let limit = bucketed_window(resolved.strategy, name);
        let (index, slots) = limit.inspect_err(|_| self.recorder.rejected(Rejection::Invalid))?;
        if interval.0 > slots.window() {
            self.recorder.rejected(Rejection::Invalid);
            return Err(bounds::beyond_window(interval, Micros(slots.window())).into());
        }
        let parts = covering(&slots, interval).min(slots.count());
        let deadline = self.store_deadline(question.deadline, clock::monotonic());
        let part = Part { limits: LimitSet::NONE.with(index), id: "" };
        let decision = Decision {
            strategy: resolved.strategy,
            subject: question.subject(resolved.group),
            op: Op::Count { parts },
            costs: &[0],
            part: Some(&part),
            deadline: deadline.as_ref(),
            caller: question.caller,
        };
        let verdicts = self.ask(&decision, question).await.map_err(LimiterError::NotCounted)?;
        let (verdict, limits) = verdicts.get(0).ok_or_else(no_verdict).map_err(LimiterError::NotCounted)?;
        let used = limits.first().map_or(0, |limit| limit.level_before);
        let oldest = (slots.part(verdict.now.0) + 1).saturating_sub(parts);
        let span = Micros(verdict.now.0.saturating_sub(slots.start(oldest)));
        Ok(CountedParts { used, span })
    }
}

/// So many of the newest parts cover an interval, however far the current one is: those before it are at least as long. One of
/// them may be shorter than the others.
const fn covering(slots: &Slots, interval: Micros) -> u64 {
    let is_even = slots.window().is_multiple_of(slots.width());
    let shorter = if is_even || interval.0 == 0 { 0 } else { 1 };
    interval.0.div_ceil(slots.width()) + 1 + shorter
}

fn bucketed_window(strategy: &Strategy, name: &str) -> Result<(usize, Slots), LimiterError> {
    let limits = strategy.limits();
    let place = match (limits, name) {
        ([_], "") => Some(0),
        (_, "") => return Err(bounds::unnamed_limit(strategy).into()),
        _ => limits.iter().position(|limit| *limit.name == *name),
    };
    let found = place.and_then(|place| Some((place, limits.get(place)?)));
    let Some((place, limit)) = found else { return Err(bounds::unknown_limit(strategy, name).into()) };
    match limit.algorithm.engine() {
        Engine::Slots(slots) => Ok((place, *slots)),
        _ => Err(LimiterError::Unsupported(format!(
            "limit `{}` of strategy `{}` keeps no parts that could be counted; only bucketed_window does",
            limit.name,
            strategy.name()
        ))),
    }
}
