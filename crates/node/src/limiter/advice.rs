//! Advice to a client on the binding limit of a decision.

use std::cmp::Ordering;
use std::slice;
use std::sync::Arc;
use std::time::Instant;

use weir_core::algorithm::{Algorithm, LimitVerdict, NextUnit, Op};
use weir_core::strategy::Strategy;
use weir_store::{
    Decision, LaterVerdicts, LimitSet, OwnedSubject, Part, Store, StoreAnswer, StoreError, Verdicts,
    decide_one,
};
use weir_units::{Micros, Retry};

use super::decided::LimitsDecision;
use crate::settle::Outcome;

/// The binding limit, and when it gets its next unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The place of the binding limit in the strategy: the one that denies longest, or, if none denies, the one of
    /// which the smallest part remains.
    pub binding: usize,
    /// The time until it gets one more unit than remains; `None` if it is full.
    pub next_unit: Option<Micros>,
}

/// Owned fields of a question, from which advice is computed later.
pub(super) struct AdviceWanted {
    subject: OwnedSubject,
    op: Op,
    cost: u64,
    deadline: Option<Instant>,
    caller: u32,
}

/// Advice, or the pending peek that completes it.
pub(super) enum AdviceBegun {
    /// Complete; `None` if no limit was asked.
    Known(Option<Advice>),
    /// Index of the binding limit, and the pending answer that has the time of its next unit.
    Later(usize, LaterVerdicts),
}

impl AdviceWanted {
    pub(super) fn new(decision: &Decision<'_>) -> Self {
        let Decision { ref subject, op, costs, deadline, caller, .. } = *decision;
        let cost = costs.first().copied().unwrap_or_default();
        Self { subject: OwnedSubject::new(subject), op, cost, deadline: deadline.copied(), caller }
    }

    /// Finds out from the answer, which is about the limits of `answered_by`, or asks the store for a peek of one unit
    /// more than remains.
    pub(super) fn begin<S: Store>(
        &self,
        store: &S,
        (strategy, answered_by): (&Arc<Strategy>, &Strategy),
        outcome: &Outcome<LimitsDecision<'_>>,
    ) -> AdviceBegun {
        let (Outcome::Decided(LimitsDecision { verdict, limits, costs })
        | Outcome::Local(LimitsDecision { verdict, limits, costs })) = outcome
        else {
            return AdviceBegun::Known(None);
        };
        let algorithms = answered_by.algorithms();
        let Some(binding) = binding(algorithms, limits) else { return AdviceBegun::Known(None) };
        let (Some(limit), Some(said)) = (algorithms.get(binding), limits.get(binding)) else {
            return AdviceBegun::Known(None);
        };
        let known = |next_unit| AdviceBegun::Known(Some(Advice { binding, next_unit }));
        if costs.is_some() {
            // What is held does not drain, so a peek at the limit alone would promise too much.
            return known(if let Retry::After(wait) = said.retry { Some(wait) } else { None });
        }
        match limit.next_unit(self.op, self.cost, verdict, said) {
            NextUnit::Full | NextUnit::None => return known(None),
            NextUnit::After(wait) => return known(Some(wait)),
            NextUnit::Unknown => {}
        }
        let one_more = said.remaining + 1;
        let part = Part { limits: LimitSet::NONE.with(binding), id: "" };
        let peek = Decision {
            strategy,
            subject: self.subject.subject(),
            op: Op::Peek,
            costs: slice::from_ref(&one_more),
            part: Some(&part),
            deadline: self.deadline.as_ref(),
            caller: self.caller,
        };
        match decide_one(store, &peek) {
            StoreAnswer::Ready(peeked) => AdviceBegun::Known(Some(Self::of_peek(binding, &peeked))),
            StoreAnswer::Later(later) => AdviceBegun::Later(binding, later),
        }
    }

    pub(super) async fn wait<S: Store>(
        &self,
        store: &S,
        strategies: (&Arc<Strategy>, &Strategy),
        outcome: &Outcome<LimitsDecision<'_>>,
    ) -> Option<Advice> {
        match self.begin(store, strategies, outcome) {
            AdviceBegun::Known(advice) => advice,
            AdviceBegun::Later(binding, later) => Some(Self::of_peek(binding, &later.await)),
        }
    }

    /// Builds the advice from a peek of one unit more. Without an answer the time is omitted: the decision stands.
    pub(super) fn of_peek(binding: usize, peeked: &Result<Verdicts, StoreError>) -> Advice {
        let retry =
            peeked.as_ref().ok().and_then(|verdicts| verdicts.limits.first()).map(|limit| limit.retry);
        let next_unit = match retry {
            Some(Retry::After(wait)) => Some(wait),
            Some(Retry::Now) => Some(Micros::ZERO),
            Some(Retry::Never | Retry::Unknown) | None => None,
        };
        Advice { binding, next_unit }
    }
}

/// The place of the binding limit; the first of several. `None` if there is no limit.
pub(super) fn binding(algorithms: &[Algorithm], limits: &[LimitVerdict]) -> Option<usize> {
    let both = || algorithms.iter().zip(limits).enumerate().filter(|(_, (limit, _))| !limit.is_shadow());
    let denies_longest = both()
        .filter(|(_, (_, said))| !said.fits())
        .reduce(|longest, other| if is_longer(other.1.1.retry, longest.1.1.retry) { other } else { longest });
    let scarcest = || both().reduce(|least, other| if is_scarcer(other.1, least.1) { other } else { least });
    denies_longest.or_else(scarcest).map(|(place, _)| place)
}

/// True if the wait `one` is longer than `other`.
fn is_longer(one: Retry, other: Retry) -> bool {
    one != other && one.max(other) == one
}

/// True if a smaller part of the first limit remains. The products are exact.
fn is_scarcer(one: (&Algorithm, &LimitVerdict), other: (&Algorithm, &LimitVerdict)) -> bool {
    let part = |(_, said): (&Algorithm, &LimitVerdict), (limit, _): (&Algorithm, &LimitVerdict)| {
        u128::from(said.remaining) * u128::from(limit.limit().max(1))
    };
    part(one, other).cmp(&part(other, one)) == Ordering::Less
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::algorithm::Cause;

    fn said(remaining: u64, retry: Retry) -> LimitVerdict {
        let cause = match retry {
            Retry::Now => None,
            Retry::After(_) | Retry::Unknown => Some(Cause::Count),
            Retry::Never => Some(Cause::Never),
        };
        LimitVerdict { cause, remaining, retry, reset_after: Micros(1), level_before: 0 }
    }

    #[test]
    fn the_binding_limit_denies_longest_or_has_the_smallest_part_left() {
        let after = |micros| Retry::After(Micros(micros));
        let limits = [10, 1_000_000_000_000_000, 3]
            .map(|limit| Algorithm::fixed_window(limit, Micros::from_secs(1), false, false).unwrap());
        for (said, expected) in [
            ([said(5, Retry::Now), said(499_999_999_999_999, Retry::Now), said(3, Retry::Now)], 1),
            ([said(5, Retry::Now), said(500_000_000_000_000, Retry::Now), said(2, Retry::Now)], 0),
            ([said(5, Retry::Now), said(500_000_000_000_001, Retry::Now), said(1, Retry::Now)], 2),
            ([said(0, Retry::Now), said(0, after(1)), said(0, after(2))], 2),
            ([said(0, after(3)), said(0, after(1)), said(0, after(3))], 0),
            ([said(0, after(3)), said(0, Retry::Never), said(0, after(5))], 1),
        ] {
            assert_eq!(binding(&limits, &said), Some(expected), "{said:?}");
        }
        assert_eq!(binding(&[], &[]), None);
    }
}
