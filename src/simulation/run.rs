//! Runs the calls of a simulation through one strategy.

use std::sync::Arc;

use prometheus::Registry;
use weir_config::MemoryConfig;
use weir_core::algorithm::LimitVerdict;
use weir_core::algorithm::budget::{BudgetVerdict, CostedLimits, LimitCost};
use weir_core::strategy::{Listed, Rules};
use weir_node::access::Rights;
use weir_node::limiter::{Answer, Begun, Limiter, LimiterError, LimitsDecision, Question, Shaping};
use weir_node::settle::Outcome;
use weir_node::telemetry::Metrics;
use weir_store::memory::MemoryStore;
use weir_time::clock::{Clock, ManualClock};
use weir_units::{Micros, Retry};

use super::{CostByName, START, SimulatedCall, SimulatedCalls};

/// Byte budget of a simulation: it never evicts a key, which would change decisions.
const BUDGET: usize = 1 << 32;

/// Results of one strategy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedStrategy {
    /// The name of the strategy.
    pub strategy: String,
    /// Admission of each call, in order.
    pub admitted: Vec<bool>,
    /// Number of admitted calls.
    pub allowed: u64,
    /// Their total cost.
    pub allowed_cost: u64,
    /// Number of denied calls.
    pub denied: u64,
    /// Denied calls that no wait would have helped.
    pub never: u64,
    /// The limits that denied, with the number of calls that each of them denied. Several limits can deny one call.
    pub denied_by: Vec<(String, u64)>,
    /// Sum of the `retry_after` of denied calls.
    pub waits: u128,
    /// The longest `retry_after`.
    pub longest_wait: Micros,
    /// Sum of the waits of admitted calls before they start.
    pub holds: u128,
    /// The longest such wait.
    pub longest_hold: Micros,
    /// The costs by name, in the order of the strategy.
    pub costs: Vec<CostSum>,
}

/// The units of all calls of one named cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostSum {
    /// The name.
    pub name: String,
    /// The units that were asked.
    pub asked: u64,
    /// The units that were granted.
    pub granted: u64,
}

/// The reason that a simulation cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The limiter refuses a call.
    #[error("call {call} at {at_us} us: {error}")]
    Refused {
        /// Number of the call, from 1.
        call: usize,
        /// Time of the call.
        at_us: u64,
        /// The error of the limiter.
        error: LimiterError,
    },
    /// A closed loop ends early.
    #[error("only {passed} of {wanted} calls pass, out of {calls}")]
    TooFew {
        /// Calls that have passed.
        passed: u64,
        /// Calls that were to pass.
        wanted: u64,
        /// All calls.
        calls: usize,
    },
    /// The limiter's metrics cannot be created.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// A limiter as in a server, on a store of its own and on `clock`.
pub(super) fn limiter_on(
    clock: &ManualClock,
    rules: &Arc<Rules>,
) -> Result<Limiter<MemoryStore>, SimulationError> {
    let config = MemoryConfig { budget: BUDGET, ..MemoryConfig::default() };
    let store = MemoryStore::new(&config, Clock::Manual(clock.clone()));
    let recorder = Metrics::register(&Registry::new(), rules)?.recorder();
    Ok(Limiter::new(Arc::clone(rules), store, recorder))
}

/// Decides `calls` in order under `strategy`, on a store of its own.
pub fn simulate(
    rules: &Arc<Rules>,
    strategy: &str,
    attributes: &[(String, String)],
    calls: &SimulatedCalls,
) -> Result<SimulatedStrategy, SimulationError> {
    let mut limiter = SimulatedLimiter::new(rules, strategy, attributes)?;
    for call in &calls.calls {
        limiter.decide(calls, call)?;
    }
    Ok(limiter.into_result())
}

/// A limiter on a clock and a store of its own, which decides under one strategy.
pub(super) struct SimulatedLimiter<'a> {
    clock: ManualClock,
    limiter: Limiter<MemoryStore>,
    strategy: &'a str,
    attributes: &'a [(String, String)],
    costed: Option<Arc<CostedLimits>>,
    result: SimulatedStrategy,
}

impl<'a> SimulatedLimiter<'a> {
    pub(super) fn new(
        rules: &Arc<Rules>,
        strategy: &'a str,
        attributes: &'a [(String, String)],
    ) -> Result<Self, SimulationError> {
        let clock = ManualClock::at(START);
        let limiter = limiter_on(&clock, rules)?;
        let costed =
            rules.resolve("", strategy).ok().and_then(|resolved| resolved.strategy.costed().cloned());
        let names = costed.iter().flat_map(|costed| &costed.names);
        let costs = names.map(|name| CostSum { name: name.to_string(), asked: 0, granted: 0 }).collect();
        let strategy_name = strategy.to_owned();
        let result = SimulatedStrategy { strategy: strategy_name, costs, ..SimulatedStrategy::default() };
        Ok(Self { clock, limiter, strategy, attributes, costed, result })
    }

    /// The results so far.
    pub(super) fn result(&self) -> &SimulatedStrategy {
        &self.result
    }

    /// The results.
    pub(super) fn into_result(self) -> SimulatedStrategy {
        self.result
    }

    /// Decides a call, which is not earlier than the one before. Returns how long its caller waits before it may call
    /// again; `None` if no wait helps. Costs that the strategy does not name are left out.
    pub(super) fn decide(
        &mut self,
        calls: &SimulatedCalls,
        call: &SimulatedCall,
    ) -> Result<Option<Micros>, SimulationError> {
        self.clock.set(Micros(START.0.saturating_add(call.at.0)));
        let Some((resource, consumer)) = calls.subjects.get(call.subject) else { return Ok(None) };
        let names = self.costed.as_ref().map_or(&[][..], |costed| &costed.names);
        let has = |cost: &&CostByName| names.iter().any(|name| **name == *cost.name);
        let costs: Vec<_> = calls.costs_of(call).iter().filter(has).map(CostByName::named).collect();
        let costed = self.costed.as_deref();
        let attributes = self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let question = Question {
            resource,
            consumer,
            strategy: self.strategy,
            cost: call.cost,
            shaping: (!costs.is_empty()).then(|| Box::new(Shaping { costs, ..Shaping::default() })),
            attributes: attributes.collect(),
            ..Question::until(None, Rights::ALL)
        };
        let (mut refused, mut wait, result) = (None, None, &mut self.result);
        self.limiter.round().decide(std::iter::once(&question), |begun| match begun {
            Begun::Answered(Ok(answer)) => {
                wait = result.count(&answer, call.cost);
                result.count_costs(&answer, calls.costs_of(call), costed);
            }
            Begun::Answered(Err(error)) => refused = Some(error),
            // The memory store answers at once.
            Begun::Waiting(_) => {}
        });
        match refused {
            Some(error) => {
                let number = self.result.admitted.len() + 1;
                Err(SimulationError::Refused { call: number, at_us: call.at.0, error })
            }
            None => Ok(wait),
        }
    }
}

impl SimulatedStrategy {
    /// Counts an answer. Returns how long its caller waits before it may call again; `None` if no wait helps.
    fn count(&mut self, answer: &Answer<'_, '_>, cost: u64) -> Option<Micros> {
        let admitted = match answer.outcome {
            Outcome::Decided(LimitsDecision { verdict, .. })
            | Outcome::Local(LimitsDecision { verdict, .. }) => verdict.allowed,
            Outcome::Listed(listed) => listed == Listed::Allow,
            // No simulation bans anybody.
            Outcome::Banned(_) => false,
            Outcome::Policy { allowed } => allowed,
        };
        let decided = match answer.outcome {
            Outcome::Decided(decided) => Some(decided),
            _ => None,
        };
        if admitted {
            return self.admit(cost, decided.map_or(Micros::ZERO, |decided| decided.verdict.wait));
        }
        let limits = decided.map_or(&[][..], |decided| decided.limits);
        for (limit, _) in answer
            .strategy
            .limits()
            .iter()
            .zip(limits)
            .filter(|(limit, verdict)| verdict.cause.is_some() && !limit.algorithm.is_shadow())
        {
            self.deny_by(&limit.name);
        }
        let longest = |limits: &[LimitVerdict]| limits.iter().fold(Retry::Now, |all, one| all.max(one.retry));
        self.deny(decided.map_or(Retry::Never, |decided| longest(decided.limits)))
    }

    /// Adds the units that were asked of each named cost, and those that were granted: what the first enforced limit of the name
    /// granted.
    fn count_costs(&mut self, answer: &Answer<'_, '_>, asked: &[CostByName], costed: Option<&CostedLimits>) {
        let Some(costed) = costed else { return };
        let verdict: Option<&BudgetVerdict> = match answer.outcome {
            Outcome::Decided(LimitsDecision { costs, .. }) => costs,
            _ => None,
        };
        for (number, sum) in self.costs.iter_mut().enumerate() {
            let units = asked.iter().find(|cost| cost.name == sum.name).map_or(0, |cost| cost.cost);
            sum.asked = sum.asked.saturating_add(units);
            let is_of = |limit: &weir_core::algorithm::budget::BudgetLimit| {
                limit.cost == LimitCost::Named(number) && !limit.algorithm.is_shadow()
            };
            let granted = verdict.filter(|verdict| verdict.allowed).and_then(|verdict| {
                let mut limits = costed.limits.iter().zip(&verdict.limits);
                limits.find(|(limit, _)| is_of(limit)).and_then(|(_, one)| one.granted)
            });
            sum.granted = sum.granted.saturating_add(granted.unwrap_or(0));
        }
    }

    /// Counts an admitted call that is to wait before it starts. Returns how long its caller waits before it may call again.
    pub fn admit(&mut self, cost: u64, hold: Micros) -> Option<Micros> {
        self.admitted.push(true);
        self.allowed += 1;
        self.allowed_cost = self.allowed_cost.saturating_add(cost);
        self.holds += u128::from(hold.0);
        self.longest_hold = self.longest_hold.max(hold);
        Some(hold)
    }

    /// Counts a denied call. Returns how long its caller waits before it may call again; `None` if no wait helps.
    pub fn deny(&mut self, retry: Retry) -> Option<Micros> {
        self.admitted.push(false);
        self.denied += 1;
        match retry {
            Retry::After(wait) => {
                self.waits += u128::from(wait.0);
                self.longest_wait = self.longest_wait.max(wait);
                Some(wait.max(Micros(1)))
            }
            Retry::Never => {
                self.never += 1;
                None
            }
            Retry::Now | Retry::Unknown => Some(Micros(1)),
        }
    }

    /// Counts a call that the limit `name` denied.
    pub fn deny_by(&mut self, name: &str) {
        match self.denied_by.iter_mut().find(|(known, _)| known == name) {
            Some((_, calls)) => *calls += 1,
            None => self.denied_by.push((name.to_owned(), 1)),
        }
    }

    /// The mean `retry_after` of denied calls.
    #[must_use]
    pub fn mean_wait(&self) -> Micros {
        let waited = u128::from(self.denied - self.never).max(1);
        Micros(u64::try_from(self.waits / waited).unwrap_or(u64::MAX))
    }

    /// Mean wait of admitted calls before they start.
    #[must_use]
    pub fn mean_hold(&self) -> Micros {
        Micros(u64::try_from(self.holds / u128::from(self.allowed.max(1))).unwrap_or(u64::MAX))
    }

    /// The largest cost admitted within any `window`: from a call on, shorter than the window.
    #[must_use]
    pub fn most_in(&self, window: Micros, calls: &SimulatedCalls) -> u64 {
        let admitted = || calls.calls.iter().zip(&self.admitted).filter(|(_, admitted)| **admitted);
        let (mut first, mut within, mut most) = (admitted(), 0_u64, 0_u64);
        let mut oldest = first.next();
        for (call, _) in admitted() {
            within = within.saturating_add(call.cost);
            while let Some((left, _)) =
                oldest.filter(|(old, _)| old.at.0.saturating_add(window.0) <= call.at.0)
            {
                within = within.saturating_sub(left.cost);
                oldest = first.next();
            }
            most = most.max(within);
        }
        most
    }
}
