//! Replays a decision log under another configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_config::KeyShare;
use weir_core::algorithm::Algorithm;
use weir_core::strategy::{FailurePolicy, Field, Listed, Resolved, Rules, Strategy, inline_name};
use weir_node::access::Rights;
use weir_node::limiter::{
    Answer, Begun, InlineLimit, Limiter, LimiterError, LimitsDecision, Question, Shaping,
};
use weir_node::settle::Outcome;
use weir_store::at_once;
use weir_store::memory::MemoryStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::logged::{LoggedDecision, LoggedDecisions, LoggedOperation};
use super::run::limiter_on;
use super::{CostByName, SimulationError};
use crate::features;

/// Results of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayResult {
    /// Results by the logged strategy.
    pub strategies: BTreeMap<String, ReplayedStrategy>,
    /// The first decisions that differ.
    pub examples: Vec<ReplayedDifference>,
    /// Lines of Envoy's requests. They are not replayed: a log lacks descriptors without a match, which other rules
    /// may limit.
    pub of_requests: u64,
}

/// Results of the calls that one strategy decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayedStrategy {
    /// Calls whose answers were compared.
    pub compared: u64,
    /// Decisions that were allowed and would have been denied.
    pub now_denied: u64,
    /// Decisions that were denied and would have been allowed.
    pub now_allowed: u64,
    /// Calls that would have been granted more or less.
    pub granted_otherwise: u64,
    /// Operations that the other configuration rejects: the strategy is missing, or lacks the operation.
    pub refused: u64,
    /// Cancellations, debits, settlements, refunds and resets, which change limits.
    pub not_compared: u64,
    /// Calls that the store did not answer. They are not replayed, because nobody knows what was charged.
    pub not_judged: u64,
}

/// A call with another answer under the other configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedDifference {
    /// Index of the line among all lines, in the order of their times.
    pub index: usize,
    /// The logged answer.
    pub before: ReplayedAnswer,
    /// The replayed answer.
    pub after: ReplayedAnswer,
}

/// Decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedAnswer {
    /// True if it is allowed.
    pub allowed: bool,
    /// Charged cost.
    pub granted: u64,
    /// The grant of each limit, where costs have names.
    pub granted_by: Vec<(String, u64)>,
}

/// The reason that a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log lacks calls that a counter counts.
    #[error(
        "limit `{limit}` of strategy `{strategy}` counts by {scope}, so callers share its counters, and a log of {keys} \
         of all keys has not all of them; log with `keys: 1`, or replay other strategies with --strategy"
    )]
    Incomplete {
        /// The strategy.
        strategy: String,
        /// The limit of the strategy.
        limit: String,
        /// Fields that it counts by.
        scope: String,
        /// The share of keys in the log.
        keys: KeyShare,
    },
    /// The limiter cannot be created.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}

/// Decides the calls of `log` in order under `rules`, on a store of their own; only those of strategies that `wanted`
/// accepts. At most `examples` differences are kept.
pub fn replay(
    rules: &Arc<Rules>,
    log: &LoggedDecisions,
    wanted: impl Fn(&str) -> bool,
    examples: usize,
) -> Result<ReplayResult, ReplayError> {
    let clock = ManualClock::at(Micros::ZERO);
    let replay = Replay { rules, limiter: limiter_on(&clock, rules)? };
    let mut result = ReplayResult::default();
    let reserved: Vec<&str> =
        features::sections().iter().filter_map(|section| section.reserved).map(|(name, _)| name).collect();
    for (index, decision) in log.decisions.iter().enumerate() {
        if !wanted(&decision.strategy) {
            continue;
        }
        if reserved.contains(&decision.strategy.as_str()) && rules.resolve("", &decision.strategy).is_err() {
            result.of_requests += 1;
            continue;
        }
        if decision.is_without_store() {
            result.strategies.entry(decision.strategy.clone()).or_default().not_judged += 1;
            continue;
        }
        clock.set(decision.time);
        let after = match (&decision.inline, replay.strategy_of(decision)) {
            (Some(algorithm), _) => replay.decide_inline(decision, algorithm),
            (None, Some((name, resolved))) => {
                check_complete(log.keys, resolved.strategy)?;
                replay.decide(decision, name, None)
            }
            (None, None) => ReplayStep::Refused,
        };
        result.count(index, decision, after, examples);
    }
    Ok(result)
}

/// Refuses a counter whose calls the log does not have completely.
fn check_complete(keys: KeyShare, strategy: &Strategy) -> Result<(), ReplayError> {
    if keys == KeyShare::ALL {
        return Ok(());
    }
    let shared = strategy
        .limits()
        .iter()
        .find(|limit| !(limit.scope.has(Field::Resource) && limit.scope.has(Field::Consumer)));
    match shared {
        None => Ok(()),
        Some(limit) => Err(ReplayError::Incomplete {
            strategy: strategy.name().to_owned(),
            limit: limit.name.to_string(),
            scope: limit.scope.to_string(),
            keys,
        }),
    }
}

struct Replay<'r> {
    rules: &'r Arc<Rules>,
    limiter: Limiter<MemoryStore>,
}

/// Result of replaying a line.
enum ReplayStep {
    Answered(ReplayedAnswer),
    Done,
    Refused,
}

impl Replay<'_> {
    /// The rule that decides instead, and the strategy's name in its question: empty if the request named none, which
    /// asks for the resource's strategy; else the logged one.
    fn strategy_of<'d>(&self, decision: &'d LoggedDecision) -> Option<(&'d str, Resolved<'_>)> {
        let name = if decision.is_for_default { "" } else { &*decision.strategy };
        Some((name, self.rules.resolve(&decision.resource, name).ok()?))
    }

    /// Refused if the other configuration does not allow inline limits.
    fn decide_inline(&self, decision: &LoggedDecision, algorithm: &Algorithm) -> ReplayStep {
        let (name, separate) = inline_name(&decision.strategy).unwrap_or_default();
        let limits = self.rules.inline_limits();
        let made =
            limits.and_then(|limits| limits.strategy(name, *algorithm, FailurePolicy::Error, separate).ok());
        match made {
            Some(strategy) => self.decide(decision, "", Some(InlineLimit::Built(Arc::new(strategy)))),
            None => ReplayStep::Refused,
        }
    }

    fn decide(
        &self,
        decision: &LoggedDecision,
        strategy: &str,
        inline: Option<InlineLimit<'_>>,
    ) -> ReplayStep {
        let is_costed = !decision.costs.is_empty() || decision.hold_for.is_some();
        let mut is_plain = decision.id.is_empty() && inline.is_none() && !is_costed;
        let costs = decision.costs.iter().map(CostByName::named).collect();
        let mut shaping = Shaping { inline, costs, ..Shaping::under(&decision.id) };
        shaping.hold_for = decision.hold_for.and_then(as_sent);
        let is_question = match decision.operation {
            LoggedOperation::Charge => true,
            LoggedOperation::AtMost => {
                (shaping.at_most, is_plain) = (true, false);
                true
            }
            LoggedOperation::Reserve { max_wait } => {
                (shaping.max_wait, is_plain) = (Some(max_wait), false);
                true
            }
            _ => false,
        };
        let attributes = decision.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let question = Question {
            resource: &decision.resource,
            consumer: &decision.consumer,
            strategy,
            cost: decision.cost,
            shaping: (!is_plain).then(|| Box::new(shaping)),
            attributes: attributes.collect(),
            ..Question::until(None, Rights::ALL)
        };
        if is_question { self.ask(&question) } else { self.change(&question, decision) }
    }

    fn ask(&self, question: &Question<'_>) -> ReplayStep {
        let mut step = ReplayStep::Refused;
        self.limiter.round().decide(std::iter::once(question), |begun| {
            let Begun::Answered(Ok(answer)) = begun else { return };
            let granted_by = granted_by(&answer);
            let (allowed, granted) = match answer.outcome {
                Outcome::Decided(LimitsDecision { verdict, .. })
                | Outcome::Local(LimitsDecision { verdict, .. }) => (verdict.allowed, verdict.granted),
                Outcome::Listed(listed) => (listed == Listed::Allow, 0),
                // No replay bans anybody.
                Outcome::Banned(_) => (false, 0),
                Outcome::Policy { allowed } => (allowed, 0),
            };
            step = ReplayStep::Answered(ReplayedAnswer { allowed, granted, granted_by });
        });
        step
    }

    /// The memory store answers at once.
    fn change(&self, question: &Question<'_>, decision: &LoggedDecision) -> ReplayStep {
        let limiter = &self.limiter;
        let result: Option<Result<(), LimiterError>> = match decision.operation {
            LoggedOperation::Cancel => at_once(async { limiter.cancel(question).await.map(drop) }),
            LoggedOperation::Debit => {
                at_once(async { limiter.debit(question, plain_cost(decision)).await.map(drop) })
            }
            LoggedOperation::Settle => {
                at_once(async { limiter.settle_hold(question, plain_cost(decision)).await.map(drop) })
            }
            LoggedOperation::Refund => {
                at_once(async { limiter.refund(question, &decision.named, &decision.id).await.map(drop) })
            }
            _ => at_once(async { limiter.reset(question, &decision.named).await.map(drop) }),
        };
        if matches!(result, Some(Ok(()))) { ReplayStep::Done } else { ReplayStep::Refused }
    }
}

/// A time as it is sent: whole seconds and nanoseconds.
fn as_sent(Micros(us): Micros) -> Option<(i64, i32)> {
    Some((i64::try_from(us / 1_000_000).ok()?, i32::try_from(us % 1_000_000 * 1_000).ok()?))
}

/// The cost of limits that take the request's; none beside named costs that are all that was used.
fn plain_cost(decision: &LoggedDecision) -> Option<u64> {
    let is_named = decision.operation == LoggedOperation::Settle || !decision.costs.is_empty();
    Some(decision.cost).filter(|cost| *cost > 0 || !is_named)
}

/// Returns the grant of each limit, where costs have names.
fn granted_by(answer: &Answer<'_, '_>) -> Vec<(String, u64)> {
    let Outcome::Decided(LimitsDecision { costs: Some(costs), .. }) = answer.outcome else {
        return Vec::new();
    };
    let limits = answer.strategy.limits().iter().zip(&costs.limits);
    limits.map(|(limit, one)| (limit.name.to_string(), one.granted.unwrap_or(0))).collect()
}

/// True if a limit that is in both granted more or less.
fn differs(before: &ReplayedAnswer, after: &ReplayedAnswer) -> bool {
    let mut pairs = before.granted_by.iter().filter_map(|(name, granted)| {
        let (_, now) = after.granted_by.iter().find(|(known, _)| known == name)?;
        Some((granted, now))
    });
    pairs.any(|(granted, now)| granted != now)
}

impl ReplayResult {
    fn count(&mut self, index: usize, decision: &LoggedDecision, step: ReplayStep, examples: usize) {
        let counts = self.strategies.entry(decision.strategy.clone()).or_default();
        let after = match step {
            ReplayStep::Answered(after) => after,
            ReplayStep::Done => return counts.not_compared += 1,
            ReplayStep::Refused => return counts.refused += 1,
        };
        let Some(allowed) = decision.admitted() else { return counts.not_compared += 1 };
        let granted_by = decision.granted_by.clone();
        let before = ReplayedAnswer { allowed, granted: decision.granted, granted_by };
        counts.compared += 1;
        match (before.allowed, after.allowed) {
            (true, false) => counts.now_denied += 1,
            (false, true) => counts.now_allowed += 1,
            (true, true)
                if decision.operation == LoggedOperation::AtMost && before.granted != after.granted
                    || differs(&before, &after) =>
            {
                counts.granted_otherwise += 1;
            }
            _ => return,
        }
        if self.examples.len() < examples {
            self.examples.push(ReplayedDifference { index, before, after });
        }
    }
}
