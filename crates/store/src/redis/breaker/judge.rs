//! The rules of a breaker, without clocks or locks.
//!
//! ```text
//!   closed → open    5 failures in a row, the first and the last sent 100 ms apart;
//!                    or half of the calls of the last second failed, and they are 20 or more
//!   open → ramp      the first answer of the node, to a probe or a call
//!   ramp → closed    100 ms with a tenth of the calls, then 100 ms with half of them
//!   ramp → open      as from closed, counted anew from the begin of the ramp
//! ```
//!
//! One stall of 30 ms at 10,000 calls/s is no outage, and neither is one failure: a node that fails 1 % of its calls
//! would otherwise be open half of the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::recent::CallSums;

const RUN: u32 = 5;
const RUN_LASTS: Duration = Duration::from_millis(100);
const LEAST_CALLS: u32 = 20;
const STEP: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct BreakerJudge {
    phase: BreakerPhase,
    run: Option<FailureRun>,
    /// Time at which it opened, and the failure that was the reason.
    opened: Option<(Instant, Arc<str>)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::redis) enum BreakerPhase {
    #[default]
    Closed,
    Open,
    /// A part of the calls is admitted. Calls that were sent before `since` count for nothing.
    Ramp {
        since: Instant,
    },
}

#[derive(Debug, Clone, Copy)]
struct FailureRun {
    failures: u32,
    first_sent: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdmittedShare {
    None,
    Tenth,
    Half,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerChange {
    Opened,
    Ramp,
    Closed,
}

impl BreakerJudge {
    pub(super) fn phase(&self) -> BreakerPhase {
        self.phase
    }

    /// Returns since when it is not closed, and why.
    pub(super) fn open(&self) -> Option<(Instant, Arc<str>)> {
        self.opened.clone().filter(|_| self.phase != BreakerPhase::Closed)
    }

    /// Returns how long ago it opened last.
    pub(super) fn open_for(&self, now: Instant) -> Option<Duration> {
        self.opened.as_ref().map(|(at, _)| now.saturating_duration_since(*at))
    }

    /// True if a success must be recorded here.
    pub(super) fn is_troubled(&self) -> bool {
        self.run.is_some() || self.phase == BreakerPhase::Open
    }

    /// Records a failure. `recent` has the calls of the last second, this one included.
    pub(super) fn failed(&mut self, sent: Instant, recent: CallSums, reason: &str) -> Option<BreakerChange> {
        if self.phase == BreakerPhase::Open || self.is_older(sent) {
            return None;
        }
        let run = self.run.get_or_insert(FailureRun { failures: 0, first_sent: sent });
        run.failures += 1;
        let is_long = run.failures >= RUN && sent.saturating_duration_since(run.first_sent) >= RUN_LASTS;
        let is_half = recent.calls >= LEAST_CALLS && recent.failed >= recent.calls - recent.failed;
        if !is_long && !is_half {
            return None;
        }
        if self.phase == BreakerPhase::Closed {
            self.opened = Some((sent, reason.into()));
        }
        (self.phase, self.run) = (BreakerPhase::Open, None);
        Some(BreakerChange::Opened)
    }

    /// Records a call or a probe that was answered.
    pub(super) fn succeeded(&mut self, sent: Instant, now: Instant) -> Option<BreakerChange> {
        if self.phase == BreakerPhase::Open {
            self.phase = BreakerPhase::Ramp { since: now };
            return Some(BreakerChange::Ramp);
        }
        if !self.is_older(sent) {
            self.run = None;
        }
        None
    }

    pub(super) fn share(&self, now: Instant) -> AdmittedShare {
        match self.phase {
            BreakerPhase::Closed => AdmittedShare::All,
            BreakerPhase::Open => AdmittedShare::None,
            BreakerPhase::Ramp { since } => match now.saturating_duration_since(since) {
                passed if passed < STEP => AdmittedShare::Tenth,
                passed if passed < 2 * STEP => AdmittedShare::Half,
                _ => AdmittedShare::All,
            },
        }
    }

    /// Ends the ramp if it is over.
    pub(super) fn settle(&mut self, now: Instant) -> Option<BreakerChange> {
        let is_over =
            matches!(self.phase, BreakerPhase::Ramp { .. }) && self.share(now) == AdmittedShare::All;
        is_over.then(|| {
            self.phase = BreakerPhase::Closed;
            BreakerChange::Closed
        })
    }

    /// True for a call that was sent before the ramp.
    fn is_older(&self, sent: Instant) -> bool {
        matches!(self.phase, BreakerPhase::Ramp { since } if sent < since)
    }
}

#[cfg(test)]
mod tests;
