//! What is in flight to a node, of decisions.

use std::sync::Arc;

use super::{MAX_KEYS, Outbox};
use crate::redis::script_call::{ScriptCall, ScriptRequest};

/// Maximum number of decisions in flight, per link. The callers of one key count as one. The number of keys has the bound of
/// a script call.
pub(super) const MAX_IN_FLIGHT: usize = 512;

/// Decisions and their keys.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FlightLoad {
    pub(super) decisions: usize,
    pub(super) keys: usize,
}

/// A script call in flight. Its decisions count until it is dropped.
pub(in crate::redis) struct Flying {
    outbox: Arc<Outbox>,
    load: FlightLoad,
}

impl FlightLoad {
    pub(super) fn of<R: ScriptRequest>(call: &ScriptCall<R>) -> Self {
        Self { decisions: call.len(), keys: call.weight() }
    }

    /// True if a decision may leave. The last one may have more keys than are left.
    pub(super) fn has_room(self) -> bool {
        self.decisions < MAX_IN_FLIGHT && self.keys < MAX_KEYS
    }

    pub(super) fn fits(self, more: Self) -> bool {
        self.decisions + more.decisions <= MAX_IN_FLIGHT && self.keys + more.keys <= MAX_KEYS
    }

    pub(super) fn add(&mut self, more: Self) {
        self.decisions += more.decisions;
        self.keys += more.keys;
    }

    pub(super) fn remove(&mut self, landed: Self) {
        self.decisions = self.decisions.saturating_sub(landed.decisions);
        self.keys = self.keys.saturating_sub(landed.keys);
    }
}

impl Flying {
    pub(super) fn new(outbox: &Arc<Outbox>, load: FlightLoad) -> Self {
        Self { outbox: Arc::clone(outbox), load }
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.outbox.land(self.load);
    }
}
