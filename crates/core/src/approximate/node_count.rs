//! The counter of a key on a node.

use weir_units::{Micros, Retry};

use super::{CountAnswer, LocalWindow, NodePush};

/// Use of a key in one window as a node knows it, and units that it has admitted by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCount {
    window: u64,
    incarnation: u64,
    admitted: u64,
    /// Admitted units that the store has counted.
    seen: u64,
    /// The store's count and its version.
    count: u64,
    version: u64,
    /// Units that were taken back, as the store said with this count.
    refunded: u64,
    /// The number of the last call for the key, and of the last one that charges.
    sequence: u64,
    charged: u64,
    /// True if the node may count: the store has answered, or nobody can have counted before. While a charge is not answered,
    /// the node does not know whether it took what was left.
    has_begun: bool,
}

/// Answer of a node by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalAnswer {
    /// The units are admitted and counted here.
    Allowed {
        /// Units used before, as far as the node knows.
        used: u64,
    },
    /// The units exceed what is left, as far as the node knows.
    Denied {
        /// Used units.
        used: u64,
        /// Wait until the units fit, if they ever do.
        retry: Retry,
    },
    /// The store decides: see [`NodeCount::charge`].
    Central,
}

impl NodeCount {
    /// Decides on `cost` units in `local`, which ends at the store's time `ends`; the store's time is `now` at most.
    pub fn decide(
        &mut self,
        local: LocalWindow,
        (cost, limit, share): (u64, u64, u64),
        now: Micros,
        ends: Micros,
    ) -> LocalAnswer {
        self.enter(local);
        let used = self.used();
        if cost > limit {
            return LocalAnswer::Denied { used, retry: Retry::Never };
        }
        if !self.has_begun {
            return LocalAnswer::Central;
        }
        if used.saturating_add(cost) > limit {
            let retry = Retry::After(Micros(ends.0.saturating_sub(now.0)));
            return LocalAnswer::Denied { used, retry };
        }
        if self.owes() + cost > share {
            return LocalAnswer::Central;
        }
        self.admitted += cost;
        LocalAnswer::Allowed { used }
    }

    /// Returns the push that goes with a charge that the store decides. Until the answer the node counts no further (R5).
    #[must_use]
    pub fn charge(&mut self, place: u64) -> NodePush {
        let push = self.push(place);
        (self.charged, self.has_begun) = (push.sequence, false);
        push
    }

    /// Takes in the store's answer to a call with `pushed`.
    pub fn learn(&mut self, pushed: NodePush, answer: CountAnswer) {
        let is_of_now = (self.window, self.incarnation) == (pushed.window, pushed.incarnation);
        // What the node sent in another window, or in another place, says nothing of this one.
        if !is_of_now || answer.window != self.window {
            return;
        }
        // An earlier charge was counted before this call, or is decided at the smaller limit.
        self.has_begun |= pushed.sequence >= self.charged;
        self.seen = self.seen.max(pushed.units.min(self.admitted));
        if answer.version >= self.version {
            (self.count, self.version, self.refunded) = (answer.count, answer.version, answer.refunded);
        }
    }

    /// All that the node has admitted, for a push.
    #[must_use]
    pub fn push(&mut self, place: u64) -> NodePush {
        self.sequence += 1;
        let Self { window, incarnation, sequence, admitted: units, .. } = *self;
        NodePush { window, place, incarnation, sequence, units }
    }

    /// Units that the store has not counted.
    pub fn owes(&self) -> u64 {
        self.admitted - self.seen
    }

    /// The window that it is about. When it has ended, the counter may be dropped, and not before (R3).
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Begins anew in another window, or under another incarnation.
    pub fn enter(&mut self, local: LocalWindow) {
        let LocalWindow { window, incarnation, begins_at_store, .. } = local;
        if (self.window, self.incarnation) != (window, incarnation) || self.is_new() {
            *self = Self { window, incarnation, has_begun: !begins_at_store, ..Self::default() };
        }
    }

    fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// Units used, as far as the node knows. After losses of the store's data, at least the units that the node has
    /// admitted, unless they were taken back.
    fn used(&self) -> u64 {
        (self.count + self.owes()).max(self.admitted.saturating_sub(self.refunded))
    }
}
