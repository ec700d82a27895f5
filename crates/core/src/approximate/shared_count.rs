//! The counter of a key in a store. Twin: `lua/approximate/count.lua`.

use std::collections::BTreeMap;

use weir_units::Micros;

/// Count of a key in its current window, in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedCount {
    window: u64,
    count: u64,
    /// Grows with each change. Begins with the time, so that it also grows where the store's data was lost.
    version: u64,
    /// Units that were taken back: what nodes have admitted of them does not count any more.
    refunded: u64,
    /// Units above the limit that nodes have pushed.
    over: u64,
    pushed: BTreeMap<u64, PushedUnits>,
}

/// Units pushed by the last holder of a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PushedUnits {
    incarnation: u64,
    sequence: u64,
    units: u64,
}

/// All that a node has admitted by itself in a window. A repeated push is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePush {
    /// The number of the window.
    pub window: u64,
    /// The place of the node.
    pub place: u64,
    /// The incarnation.
    pub incarnation: u64,
    /// Grows with each call of the node for this key. What was overtaken may know too little of what the node owes.
    pub sequence: u64,
    /// The units.
    pub units: u64,
}

/// Operation on the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountOp {
    /// Charges the cost, if it fits: so many times, as long as it does.
    Charge,
    /// Charges as much of the cost as fits.
    AtMost,
    /// Says whether the cost would fit.
    Peek,
    /// Charges the cost up to the bound of the debt, whatever fits.
    Force,
    /// Takes the cost back, as far as it is counted.
    Refund,
    /// Takes everything back.
    Reset,
}

/// Request of a node to the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountAsk {
    /// Push that is counted first.
    pub push: Option<NodePush>,
    /// Operation after the push.
    pub op: CountOp,
    /// The units to decide on; 0 asks for the count alone.
    pub cost: u64,
    /// Number of calls of this cost, one after the other. For [`CountOp::Charge`]; 1 for the others.
    pub times: u64,
    /// The limit.
    pub limit: u64,
    /// Units that each holder of a place may owe. A call of another node is decided at so much less, and so is one that
    /// does not show all that its node owes: of a past window, of a holder of before, or overtaken by a later one.
    pub share: u64,
    /// Up to which count a debit charges.
    pub most: u64,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountAnswer {
    /// Number of calls that passed: the first ones.
    pub passed: u64,
    /// Units that were charged, or taken back.
    pub units: u64,
    /// The limit that they were decided at.
    pub at: u64,
    /// The units that were counted before the calls, after the push.
    pub before: u64,
    /// The store's window.
    pub window: u64,
    /// The units that are counted, after the decision.
    pub count: u64,
    /// The version of the count.
    pub version: u64,
    /// Units that were taken back in this window.
    pub refunded: u64,
    /// Units above the limit that nodes have pushed in this window.
    pub over: u64,
    /// The store's time.
    pub now: Micros,
}

impl CountAsk {
    /// Creates the request of a push alone.
    pub const fn of_push(push: NodePush, limit: u64) -> Self {
        Self { push: Some(push), op: CountOp::Peek, cost: 0, times: 1, limit, share: 0, most: 0 }
    }
}

impl CountOp {
    /// Returns the name in the script.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::AtMost => "at_most",
            Self::Peek => "peek",
            Self::Force => "force",
            Self::Refund => "refund",
            Self::Reset => "reset",
        }
    }
}

impl SharedCount {
    /// Counts what was pushed, and decides, at the store's time `now`, in windows of this length.
    pub fn answer(&mut self, ask: CountAsk, now: Micros, length: Micros) -> CountAnswer {
        let window = now.0 / length.0.max(1);
        if self.window != window || self.version == 0 {
            *self = Self { window, version: now.0.max(self.version + 1), ..Self::default() };
        }
        let holds = ask.push.is_some_and(|push| push.window == window && self.push(push, ask.limit));
        let at = if holds { ask.limit } else { ask.limit.saturating_sub(ask.share) };
        let before = self.count;
        let (passed, units) = self.decide(&ask, at);
        let Self { count, version, refunded, over, .. } = *self;
        CountAnswer { passed, units, at, before, window, count, version, refunded, over, now }
    }

    /// Returns the number of calls that pass, and the units that are charged or taken back.
    fn decide(&mut self, ask: &CountAsk, at: u64) -> (u64, u64) {
        let (cost, before) = (ask.cost, self.count);
        let fits = u64::from(before + cost <= at);
        let (passed, units) = match ask.op {
            CountOp::Peek => (fits, 0),
            CountOp::Charge if cost == 0 => (fits * ask.times, 0),
            CountOp::Charge => {
                let passed = ask.times.min(at.saturating_sub(before) / cost);
                (passed, passed * cost)
            }
            CountOp::AtMost => {
                let units = cost.min(at.saturating_sub(before));
                (u64::from(units > 0).max(fits), units)
            }
            CountOp::Force => (1, cost.min(ask.most.saturating_sub(before))),
            CountOp::Refund => (1, cost.min(before)),
            CountOp::Reset => (1, before),
        };
        match ask.op {
            CountOp::Refund | CountOp::Reset if units > 0 => {
                self.count -= units;
                self.refunded += units;
                self.version += 1;
            }
            _ if units > 0 => self.add(units),
            _ => {}
        }
        (passed, units)
    }

    /// Counts what is new. False if a later call of this place has come before.
    fn push(&mut self, push: NodePush, limit: u64) -> bool {
        let NodePush { incarnation, sequence, units, .. } = push;
        let last = self.pushed.entry(push.place).or_default();
        if incarnation < last.incarnation {
            return false;
        }
        if incarnation > last.incarnation {
            *last = PushedUnits { incarnation, sequence: 0, units: 0 };
        }
        let (is_last, more) = (sequence >= last.sequence, units.saturating_sub(last.units));
        (last.sequence, last.units) = (last.sequence.max(sequence), last.units.max(units));
        if more > 0 {
            let before = self.count;
            self.add(more);
            // A debit may have passed the limit before: that is no over-admission.
            self.over += self.count.saturating_sub(before.max(limit));
        }
        is_last
    }

    fn add(&mut self, units: u64) {
        self.count += units;
        self.version += 1;
    }
}
