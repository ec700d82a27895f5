//! A closed loop: calls go on until so many have passed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use weir_core::strategy::Rules;
use weir_units::Micros;

use super::call_pattern::{CallPattern, PatternError};
use super::run::{SimulatedLimiter, SimulatedStrategy, SimulationError};
use super::{CostByName, MAX_CALLS, SimulatedCall, SimulatedCalls};

/// Calls until so many have passed: `until:300` or `until:300:constant:40/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntilPattern {
    /// The number of calls that must pass.
    passes: u64,
    /// The times of the calls; `None`: each consumer calls again as soon as it may.
    pattern: Option<CallPattern>,
}

/// The callers, and the cost of a call.
#[derive(Debug, Clone, Copy)]
pub struct UntilCallers<'a> {
    /// The resource.
    pub resource: &'a str,
    /// The number of consumers.
    pub consumers: usize,
    /// The cost of a call.
    pub cost: u64,
    /// The costs of a call by name.
    pub costs: &'a [CostByName],
    /// The seed of random patterns.
    pub seed: u64,
}

impl UntilPattern {
    /// Parses a pattern of the command line; `None` if it is of another kind.
    pub fn parse(text: &str) -> Option<Result<Self, PatternError>> {
        let rest = text.strip_prefix("until:")?;
        let (count, pattern) = match rest.split_once(':') {
            Some((count, pattern)) => (count, Some(pattern)),
            None => (rest, None),
        };
        let passes = match count.parse::<u64>() {
            Ok(passes @ 1..=1_000_000) => passes,
            _ => {
                let reason = "the calls that must pass are 1 to 1000000, such as until:300".to_owned();
                return Some(Err(PatternError { pattern: text.to_owned(), column: 7, reason }));
            }
        };
        let before = 8 + count.chars().count();
        let pattern = pattern.map(CallPattern::parse).transpose();
        Some(pattern.map(|pattern| Self { passes, pattern }).map_err(|error| PatternError {
            pattern: text.to_owned(),
            column: before - 1 + error.column,
            reason: error.reason,
        }))
    }

    /// Runs one strategy until so many calls have passed. Returns its calls, too: they depend on its answers.
    pub fn simulate(
        &self,
        rules: &Arc<Rules>,
        strategy: &str,
        attributes: &[(String, String)],
        callers: UntilCallers<'_>,
    ) -> Result<(SimulatedStrategy, SimulatedCalls), SimulationError> {
        let mut limiter = SimulatedLimiter::new(rules, strategy, attributes)?;
        let calls = self.run(&mut limiter, callers)?;
        Ok((limiter.into_result(), calls))
    }

    /// Makes calls until so many have passed, and returns them.
    pub fn run<D: UntilDecider>(
        &self,
        decider: &mut D,
        callers: UntilCallers<'_>,
    ) -> Result<SimulatedCalls, D::Error> {
        let consumers = callers.consumers.max(1);
        let name = |index| if consumers == 1 { "consumer".to_owned() } else { format!("consumer-{index}") };
        let subjects = (0..consumers).map(|index| (callers.resource.to_owned(), name(index))).collect();
        let mut calls = SimulatedCalls { subjects, costs: vec![callers.costs.to_vec()], calls: Vec::new() };
        let mut next = NextCalls::new(self.pattern, consumers, callers.seed);
        while decider.result().allowed < self.passes {
            let too_few = |result: &SimulatedStrategy| SimulationError::TooFew {
                passed: result.allowed,
                wanted: self.passes,
                calls: result.admitted.len(),
            };
            let Some((at, subject)) = next.pop().filter(|_| calls.calls.len() < MAX_CALLS) else {
                return Err(too_few(decider.result()).into());
            };
            let mut call = SimulatedCall { at, subject, cost: callers.cost, costs: 0 };
            let wait = decider.decide(&calls, &mut call)?;
            calls.calls.push(call);
            match wait {
                Some(wait) => next.again(call.at, subject, wait),
                None if self.pattern.is_none() && next.is_empty() => {
                    return Err(too_few(decider.result()).into());
                }
                None => {}
            }
        }
        Ok(calls)
    }
}

/// A decider of the calls of a closed loop.
pub trait UntilDecider {
    /// The reason for an early end of the loop.
    type Error: From<SimulationError>;

    /// Decides a call, and returns how long its caller waits before it may call again; `None` if no wait helps. Where time passes by
    /// itself, the call gets the time at which it was made. `calls` has the subjects and the costs that it names.
    fn decide(
        &mut self,
        calls: &SimulatedCalls,
        call: &mut SimulatedCall,
    ) -> Result<Option<Micros>, Self::Error>;

    /// The results so far.
    fn result(&self) -> &SimulatedStrategy;
}

impl UntilDecider for SimulatedLimiter<'_> {
    type Error = SimulationError;

    fn decide(
        &mut self,
        calls: &SimulatedCalls,
        call: &mut SimulatedCall,
    ) -> Result<Option<Micros>, SimulationError> {
        SimulatedLimiter::decide(self, calls, call)
    }

    fn result(&self) -> &SimulatedStrategy {
        SimulatedLimiter::result(self)
    }
}

/// The calls that come next.
enum NextCalls {
    Pattern {
        times: Box<dyn FnMut() -> Option<Micros>>,
        made: usize,
        consumers: usize,
    },
    /// By time; of one time by the number of the call, so that the order is always the same.
    Loop {
        waiting: BinaryHeap<Reverse<(Micros, u64, usize)>>,
        number: u64,
    },
}

impl NextCalls {
    fn new(pattern: Option<CallPattern>, consumers: usize, seed: u64) -> Self {
        match pattern {
            Some(pattern) => Self::Pattern { times: Box::new(pattern.times(seed)), made: 0, consumers },
            None => {
                let first = (0_u64..).zip(0..consumers);
                let waiting = first.map(|(number, subject)| Reverse((Micros::ZERO, number, subject)));
                Self::Loop { waiting: waiting.collect(), number: consumers as u64 }
            }
        }
    }

    fn pop(&mut self) -> Option<(Micros, usize)> {
        match self {
            Self::Pattern { times, made, consumers } => {
                let subject = *made % *consumers;
                *made += 1;
                times().map(|at| (at, subject))
            }
            Self::Loop { waiting, .. } => waiting.pop().map(|Reverse((at, _, subject))| (at, subject)),
        }
    }

    /// A consumer calls again after its wait.
    fn again(&mut self, at: Micros, subject: usize, wait: Micros) {
        if let Self::Loop { waiting, number } = self {
            waiting.push(Reverse((Micros(at.0.saturating_add(wait.0)), *number, subject)));
            *number += 1;
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Loop { waiting, .. } if waiting.is_empty())
    }
}
