//! The pace of a node: how long a decision takes that waits for it, and how long its script calls are.
//!
//! ```text
//!   congested    answers come late: decisions that are answered in a while, over that while, is the pace
//!   otherwise    a call's time over its decisions: the pace is at least that fast
//! ```
//!
//! A new node has no pace, and takes everything. A slow pace is forgotten with the first answer that comes in time. So a
//! stall of Redis, or of this process, does not outlast itself.

use std::time::{Duration, Instant};

use crate::cost::{CALL_COST, ScriptCost};

/// Decisions that may always be asked: without any, no pace would be seen.
const ALWAYS: usize = 16;

/// The least span over which a pace is measured.
const SPAN: Duration = Duration::from_millis(5);

/// Time for which the shortest time of a call is remembered, once or twice.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Calls of which the fastest tells how fast the node is.
const FASTEST_OF: u32 = 32;

#[derive(Debug)]
pub(super) struct NodePace {
    /// Answers that come later than this, beyond the time of a call, are congestion.
    late: Duration,
    /// Time for each decision that waits; none at first.
    each: Duration,
    shortest: ShortestTime,
    /// Begin of the span that is measured while there is congestion, and the decisions answered in it.
    span: Option<(Instant, usize)>,
    last_landed: Option<Instant>,
    fill: CallFill,
}

/// A script call that has been answered, or will not be.
#[derive(Debug, Clone, Copy)]
pub(super) struct LandedCall {
    pub(super) decisions: usize,
    pub(super) cost: ScriptCost,
    /// Time at which its oldest decision was queued.
    pub(super) queued: Instant,
    pub(super) sent: Instant,
    pub(super) is_answered: bool,
}

/// The shortest time from a call to its answer, of this span and of the one before.
#[derive(Debug, Default)]
struct ShortestTime {
    began: Option<Instant>,
    before: Option<Duration>,
    now: Option<Duration>,
}

/// Bound of the cost of calls: adapted so that they take the time that `CALL_COST` is meant to be.
#[derive(Debug)]
struct CallFill {
    cost: ScriptCost,
    /// The fastest of the last calls, as nanoseconds for each microsecond of cost.
    fastest: u64,
    calls: u32,
}

impl NodePace {
    /// Creates the pace of a node whose decisions have this time, and may wait for others for `gather`.
    pub(super) fn new(deadline: Duration, gather: Duration) -> Self {
        let fill = CallFill { cost: CALL_COST, fastest: u64::MAX, calls: 0 };
        Self {
            late: deadline / 5 + gather,
            each: Duration::ZERO,
            shortest: ShortestTime::default(),
            span: None,
            last_landed: None,
            fill,
        }
    }

    /// True once answers have come late.
    pub(super) fn is_known(&self) -> bool {
        !self.each.is_zero()
    }

    /// True if a decision behind `ahead` others will be answered within `left`, as far as is known.
    pub(super) fn is_in_time(&self, ahead: usize, left: Duration) -> bool {
        if ahead < ALWAYS || self.each.is_zero() {
            return true;
        }
        let waits = self.each.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX));
        // The pace is a mean, so a fifth is kept.
        self.shortest.time().saturating_add(waits) <= left / 5 * 4
    }

    /// The cost that a script call is filled up to.
    pub(super) fn call_cost(&self) -> ScriptCost {
        self.fill.cost
    }

    pub(super) fn landed(&mut self, call: LandedCall, now: Instant) {
        let took = now.saturating_duration_since(call.sent);
        if call.is_answered {
            self.shortest.record(took, now);
            // The node began with it when the call before it ended, at the latest.
            let begun = self.last_landed.map_or(call.sent, |last| last.max(call.sent));
            self.fill.record(now.saturating_duration_since(begun), call.cost);
        }
        self.last_landed = Some(now);
        let waited = now.saturating_duration_since(call.queued);
        if waited.saturating_sub(self.shortest.time()) < self.late {
            self.span = None;
            let at_most = took / u32::try_from(call.decisions).unwrap_or(u32::MAX).max(1);
            self.each = self.each.min(at_most);
            return;
        }
        let (began, landed) = self.span.unwrap_or((now, 0));
        let landed = if self.span.is_some() && call.is_answered { landed + call.decisions } else { landed };
        self.span = Some((began, landed));
        let span = now.saturating_duration_since(began);
        if span < SPAN {
            return;
        }
        let seen = span / u32::try_from(landed).unwrap_or(u32::MAX).max(1);
        self.each = if self.each.is_zero() { seen } else { (self.each + seen) / 2 };
        self.span = Some((now, 0));
    }
}

impl ShortestTime {
    fn time(&self) -> Duration {
        self.before.into_iter().chain(self.now).min().unwrap_or_default()
    }

    fn record(&mut self, took: Duration, now: Instant) {
        let began = *self.began.get_or_insert(now);
        if now.saturating_duration_since(began) >= REMEMBERED {
            (self.began, self.before) = (Some(now), self.now.take());
        }
        self.now = Some(self.now.map_or(took, |shortest| shortest.min(took)));
    }
}

impl CallFill {
    /// A call may have waited for this process and for other clients, so the fastest of several counts.
    fn record(&mut self, took: Duration, cost: ScriptCost) {
        // Of a call that is nearly empty, the round trip is most of the time.
        if cost < CALL_COST / 8 {
            return;
        }
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.fastest = self.fastest.min(took.saturating_mul(1_000) / cost);
        self.calls += 1;
        if self.calls < FASTEST_OF {
            return;
        }
        let cost = CALL_COST.saturating_mul(1_000) / self.fastest.max(1);
        // The costs are those at worst, so twice as much is bounded too.
        self.cost = cost.clamp(CALL_COST / 4, 2 * CALL_COST);
        (self.fastest, self.calls) = (u64::MAX, 0);
    }
}

#[cfg(test)]
mod tests;
