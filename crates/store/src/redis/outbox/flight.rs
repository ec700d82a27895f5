//! Decisions in flight to a node.

use std::sync::Arc;
use std::time::Instant;

use super::Outbox;
use super::pace::LandedCall;
use crate::cost::ScriptCost;
use crate::redis::script_call::{ScriptCall, ScriptRequest};

/// Maximum number of decisions in flight, per link. The callers of one key count as one.
pub(super) const MAX_IN_FLIGHT: usize = 512;

/// Decisions and their cost for the node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FlightLoad {
    pub(super) decisions: usize,
    pub(super) cost: ScriptCost,
}

/// A script call in flight. Its decisions count until it is dropped.
pub(in crate::redis) struct Flying {
    outbox: Arc<Outbox>,
    call: LandedCall,
}

impl FlightLoad {
    pub(super) fn of<R: ScriptRequest>(call: &ScriptCall<R>) -> Self {
        Self { decisions: call.len(), cost: call.cost() }
    }

    /// True if a decision may leave. The last one may cost more than is left of `most`.
    pub(super) fn has_room(self, most: ScriptCost) -> bool {
        self.decisions < MAX_IN_FLIGHT && self.cost < most
    }

    pub(super) fn fits(self, more: Self, most: ScriptCost) -> bool {
        self.decisions + more.decisions <= MAX_IN_FLIGHT && self.cost + more.cost <= most
    }

    pub(super) fn add(&mut self, more: Self) {
        self.decisions += more.decisions;
        self.cost += more.cost;
    }

    pub(super) fn remove(&mut self, landed: Self) {
        self.decisions = self.decisions.saturating_sub(landed.decisions);
        self.cost = self.cost.saturating_sub(landed.cost);
    }
}

impl Flying {
    pub(super) fn new<R: ScriptRequest>(outbox: &Arc<Outbox>, call: &ScriptCall<R>, now: Instant) -> Self {
        let FlightLoad { decisions, cost } = FlightLoad::of(call);
        let call = LandedCall { decisions, cost, queued: call.begun(), sent: now, is_answered: false };
        Self { outbox: Arc::clone(outbox), call }
    }

    pub(in crate::redis) fn answered(&mut self) {
        self.call.is_answered = true;
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.outbox.land(self.call);
    }
}
