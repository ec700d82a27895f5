//! The health of a backend, as readiness and metrics show it.

use std::fmt;
use std::time::Instant;

use weir_time::clock::{Clock, monotonic};
use weir_units::Micros;

/// Health of a backend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendStatus {
    /// Every node that is probed.
    pub nodes: Vec<NodeStatus>,
    /// Problems that make some or all decisions fail.
    pub problems: Vec<Problem>,
    /// Problems that degrade answers while decisions are still made.
    pub notes: Vec<Problem>,
    /// Number of times that the breaker of any node has opened, also of nodes that are gone.
    pub breakers_opened: u64,
    /// The capabilities that no node has of those that need them, by name. Decisions are none of them.
    pub missing: Vec<&'static str>,
    /// True if another node of Weir uses another `key_secret`.
    pub other_key_secret: bool,
    /// True if another node of Weir has other limits under the same names.
    pub other_rules: bool,
}

/// The health of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// The address.
    pub node: String,
    /// True if it is known to decide.
    pub up: bool,
    /// True while its calls fail, and rate limits are answered by their policy at once.
    pub breaker_open: bool,
    /// Number of times that this has begun.
    pub breaker_opened: u64,
    /// Number of keys it evicted since this process first checked.
    pub evicted_keys: u64,
    /// True if its `maxmemory-policy` evicts keys.
    pub may_evict: bool,
}

/// A problem that an operator can solve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The problem, as a sentence.
    pub what: String,
    /// The start.
    pub since: Since,
    /// The cause, as far as it is known.
    pub reason: String,
    /// The remedy.
    pub remedy: String,
}

impl BackendStatus {
    /// True if at least one node decides.
    pub fn can_decide(&self) -> bool {
        self.nodes.iter().any(|node| node.up)
    }
}

impl fmt::Display for Problem {
    /// Formats it without its start.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, reason, remedy, .. } = self;
        write!(f, "{what}: {reason}; what to do: {remedy}")
    }
}

/// A point in time, on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// On the wall clock, for display.
    pub wall: Micros,
    /// On the monotonic clock, for durations.
    pub instant: Instant,
}

impl Since {
    /// Returns the current time.
    pub fn now() -> Self {
        Self { wall: Clock::System.now(), instant: monotonic() }
    }

    /// Returns a time on the monotonic clock, on both clocks.
    pub fn from_instant(instant: Instant) -> Self {
        let now = Self::now();
        let passed = Micros::from(now.instant.saturating_duration_since(instant));
        Self { wall: Micros(now.wall.0.saturating_sub(passed.0)), instant }
    }
}
