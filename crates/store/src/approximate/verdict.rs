//! Decisions about a counter, as verdicts.

use weir_core::algorithm::{Cause, LimitVerdict, Op, Verdict};
use weir_core::approximate::{CountAnswer, CountOp, LocalAnswer};
use weir_core::strategy::Strategy;
use weir_units::{Micros, Retry};

use super::moment::NodeWindow;
use crate::Verdicts;

/// A decision about one counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountVerdict {
    now: Micros,
    /// Until the window ends.
    left: Micros,
    allowed: bool,
    /// True if the cost is more than the limit.
    is_never: bool,
    fits: bool,
    granted: u64,
    before: u64,
    after: u64,
    at: u64,
}

impl CountVerdict {
    /// Creates the verdict of the node itself; `None` if the store decides.
    pub(super) fn of_node(answer: LocalAnswer, cost: u64, limit: u64, window: &NodeWindow) -> Option<Self> {
        let of = |allowed, is_never, before, after| Self {
            now: window.now,
            left: Micros(window.ends.0.saturating_sub(window.now.0)),
            allowed,
            is_never,
            fits: allowed,
            granted: if allowed { cost } else { 0 },
            before,
            after,
            at: limit,
        };
        match answer {
            LocalAnswer::Allowed { used } => Some(of(true, false, used, used + cost)),
            LocalAnswer::Denied { used, retry } => Some(of(false, retry == Retry::Never, used, used)),
            LocalAnswer::Central => None,
        }
    }

    /// Creates the store's verdict on call number `index` of those that it was asked for together.
    pub(super) fn of_store(
        answer: &CountAnswer,
        (op, cost, limit): (CountOp, u64, u64),
        index: u64,
        window: Micros,
    ) -> Self {
        let allowed = index < answer.passed;
        let passed_before = if op == CountOp::Charge { cost * index.min(answer.passed) } else { 0 };
        let before = answer.before + passed_before;
        let after = match op {
            CountOp::Charge => before + if allowed { cost } else { 0 },
            CountOp::AtMost | CountOp::Force => before + answer.units,
            CountOp::Peek => before,
            CountOp::Refund | CountOp::Reset => before - answer.units.min(before),
        };
        let granted = match op {
            CountOp::AtMost | CountOp::Force => answer.units,
            _ if allowed => cost,
            _ => 0,
        };
        let ends = (answer.window + 1) * window.0;
        Self {
            now: answer.now,
            left: Micros(ends.saturating_sub(answer.now.0)),
            allowed,
            is_never: cost > limit && op != CountOp::AtMost,
            fits: if op == CountOp::AtMost { allowed } else { before.saturating_add(cost) <= answer.at },
            granted,
            before,
            after,
            at: answer.at,
        }
    }

    pub(super) fn verdicts(&self, op: CountOp, strategy: &Strategy) -> Verdicts {
        let weight = strategy.algorithms().first().map_or(1, |limit| limit.weight());
        let cause = match () {
            () if self.fits => None,
            () if self.is_never => Some(Cause::Never),
            () => Some(Cause::Count),
        };
        let retry = match () {
            () if self.allowed => Retry::Now,
            () if self.is_never => Retry::Never,
            () => Retry::After(self.left),
        };
        let limit = LimitVerdict {
            cause,
            remaining: self.at.saturating_sub(self.after),
            retry,
            reset_after: if self.after > 0 { self.left } else { Micros::ZERO },
            level_before: self.before.saturating_mul(weight),
        };
        let forced = matches!(op, CountOp::Force | CountOp::Refund | CountOp::Reset);
        let verdict = Verdict {
            now: self.now,
            allowed: self.allowed || forced,
            fitted: self.fits,
            granted: self.granted,
            wait: Micros::ZERO,
            applied: self.allowed || forced,
        };
        let mut verdicts = Verdicts::default();
        verdicts.limits.push(limit);
        verdicts.decisions.push(verdict);
        verdicts
    }
}

/// Returns the counter's operation for that of a decision; the counter knows no ids and no reservations.
pub(super) fn count_op(op: Op) -> Option<CountOp> {
    match op {
        Op::Charge => Some(CountOp::Charge),
        Op::AtMost => Some(CountOp::AtMost),
        Op::Peek => Some(CountOp::Peek),
        Op::Force => Some(CountOp::Force),
        Op::Refund => Some(CountOp::Refund),
        Op::Reset => Some(CountOp::Reset),
        Op::Reserve { .. } | Op::Cancel | Op::Count { .. } => None,
    }
}
