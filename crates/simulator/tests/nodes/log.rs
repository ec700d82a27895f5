//! The events of a run in their order. Checks and people read them, and their digest shows whether two runs are the
//! same.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use weir::leases::model::{LeaseAnswer, LeaseOp};
use weir_core::algorithm::budget::SettleOutcome;
use weir_core::algorithm::{LimitVerdict, Op, Verdict};
use weir_store::StoreError;
use weir_units::Micros;

use crate::timeline::Timeline;

/// Something that happened, at the true time.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvent {
    pub(crate) at: u64,
    pub(crate) event: SimulationEvent,
}

/// An event of a run. Some events are for people alone.
#[derive(Debug, Clone)]
#[allow(dead_code)]
pub(crate) enum SimulationEvent {
    /// A server ran a script.
    Script(ScriptEvent),
    /// A node asks its store, with all callers that it has joined.
    Asked(StoreQuestion),
    /// The store answered the node.
    Answered(StoreQuestion, Result<Vec<DecidedCost>, StoreError>),
    /// A caller asks a node.
    Called { call: u64, node: usize, counter: CounterName, cost: u64 },
    /// The caller has its answer.
    Ended { call: u64, node: usize, counter: CounterName, cost: u64, outcome: CallOutcome },
    /// A holder asks for a lease, or gives it back.
    Leased {
        node: usize,
        key: String,
        id: String,
        op: LeaseOp,
        /// `None` when the call begins.
        answer: Option<Result<LeaseAnswer, StoreError>>,
    },
    /// A caller was told that it holds units, `held_for` µs from when that was decided: after `sent`. `is_new`: this question has
    /// made the hold.
    Held { key: String, id: String, units: u64, sent: u64, held_for: u64, is_new: bool },
    /// The caller settles.
    Settling { key: String, id: String },
    /// The caller was told that it has settled. `is_new`: this settlement has done it.
    Settled { key: String, id: String, used: u64, outcome: SettleOutcome, is_new: bool },
    /// Something went wrong.
    Fault(WorldFault),
}

/// A script that ran.
#[derive(Debug, Clone)]
pub(crate) struct ScriptEvent {
    pub(crate) server: usize,
    /// The server's time.
    pub(crate) now: Micros,
    pub(crate) name: &'static str,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) reply: Vec<u8>,
}

/// Whose counters a decision is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CounterName {
    pub(crate) strategy: String,
    pub(crate) consumer: String,
}

/// A question of a node for its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreQuestion {
    pub(crate) node: usize,
    pub(crate) counter: CounterName,
    pub(crate) op: Op,
    pub(crate) costs: Vec<u64>,
}

/// The verdict about one cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecidedCost {
    pub(crate) verdict: Verdict,
    pub(crate) limits: Vec<LimitVerdict>,
}

/// The answer that a caller got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// By the store, or by a node that counts.
    Decided(DecidedCost),
    /// By the node itself, because the store did not answer.
    Local { allowed: bool },
    /// By the failure policy.
    Policy { allowed: bool },
    /// Nothing but an error.
    Failed(String),
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorldFault {
    /// A node begins, crashes, or ends after its last answer.
    NodeBegins(usize),
    NodeCrashes(usize),
    NodeEnds(usize),
    /// Bytes in flight between the two wait until the path is healed.
    PathCut {
        node: usize,
        server: usize,
        way: &'static str,
    },
    PathHealed {
        node: usize,
        server: usize,
    },
    /// A connection is lost, with what is on its way from the server, or both ways.
    ConnectionLost {
        node: usize,
        server: usize,
        both_ways: bool,
    },
    /// The server's current data will be its data after a failover.
    Replicated(usize),
    ServerDies(usize),
    /// The server loses all writes since the last replication.
    ServerFailsOver(usize),
    ClockSteps {
        server: usize,
        by: i64,
    },
    ScriptsForgotten(usize),
    /// Keys go to another server: some before their slots do, the others with them.
    KeysMove {
        from: usize,
        to: usize,
        keys: Vec<Vec<u8>>,
    },
    /// A server drops keys that it has and should not.
    KeysDropped {
        server: usize,
        keys: Vec<Vec<u8>>,
    },
    SlotsBeginToMove {
        from: usize,
        to: usize,
        first: u16,
        last: u16,
    },
    SlotsHaveMoved {
        from: usize,
        to: usize,
        first: u16,
        last: u16,
    },
}

/// The log of a run. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SimulationLog {
    timeline: Timeline,
    events: Arc<Mutex<Vec<LoggedEvent>>>,
}

impl SimulationLog {
    pub(crate) fn new(timeline: Timeline) -> Self {
        Self { timeline, events: Arc::default() }
    }

    pub(crate) fn add(&self, event: SimulationEvent) {
        self.events.lock().push(LoggedEvent { at: self.timeline.now(), event });
    }

    /// The true time.
    pub(crate) fn now(&self) -> u64 {
        self.timeline.now()
    }

    pub(crate) fn fault(&self, fault: WorldFault) {
        self.add(SimulationEvent::Fault(fault));
    }

    pub(crate) fn take(&self) -> Vec<LoggedEvent> {
        std::mem::take(&mut *self.events.lock())
    }
}

impl fmt::Display for LoggedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3} ms  ", self.at as f64 / 1_000.0)?;
        match &self.event {
            SimulationEvent::Script(script) => write!(f, "{script}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for ScriptEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, now, name, keys, arguments, reply } = self;
        write!(f, "Script {name} on server {server} at {}", now.0)?;
        for key in keys {
            write!(f, " {}", key.escape_ascii())?;
        }
        f.write_str(" |")?;
        for argument in arguments {
            write!(f, " {}", argument.escape_ascii())?;
        }
        write!(f, " -> {}", reply.escape_ascii())
    }
}
