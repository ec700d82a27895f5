//! The counter of a key on a node.

use weir_units::{Micros, Retry};

use super::{CountAnswer, LocalWindow, NodePush};

/// What a node knows of a key in one window, and what it has admitted by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCount {
    window: u64,
    incarnation: u64,
    /// Units that the node has admitted.
    admitted: u64,
    /// Of them, those that the store has counted.
    seen: u64,
    /// The store's count and its version.
    count: u64,
    version: u64,
    /// The number of the last call for the key, and of the last one that charges.
    sequence: u64,
    charged: u64,
    /// True if the node may count: the store has answered, or nobody can have counted before. While a charge is not answered,
    /// the node does not know whether it took what was left.
    has_begun: bool,
}

/// What a node answers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalAnswer {
    /// The units are admitted and counted here.
    Allowed {
        /// What is left.
        remaining: u64,
    },
    /// They are more than what is left, as far as the node knows.
    Denied {
        /// What is left.
        remaining: u64,
        /// When they fit, if they ever do.
        retry: Retry,
    },
    /// The store decides, and counts what is pushed with it.
    Central(NodePush),
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
        let remaining = limit.saturating_sub(used);
        if cost > limit {
            return LocalAnswer::Denied { remaining, retry: Retry::Never };
        }
        if !self.has_begun {
            return self.central(local.place);
        }
        if cost > remaining {
            return LocalAnswer::Denied {
                remaining,
                retry: Retry::After(Micros(ends.0.saturating_sub(now.0))),
            };
        }
        if self.owes() + cost > share {
            return self.central(local.place);
        }
        self.admitted += cost;
        LocalAnswer::Allowed { remaining: remaining - cost }
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
            (self.count, self.version) = (answer.count, answer.version);
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
    #[must_use]
    pub fn owes(&self) -> u64 {
        self.admitted - self.seen
    }

    /// The window that it is about. When it has ended, the counter may be dropped, and not before (R3).
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window
    }

    fn central(&mut self, place: u64) -> LocalAnswer {
        let push = self.push(place);
        (self.charged, self.has_begun) = (push.sequence, false);
        LocalAnswer::Central(push)
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

    /// What is used, as far as the node knows. After losses of the store's data, at least what the node has admitted.
    fn used(&self) -> u64 {
        (self.count + self.owes()).max(self.admitted)
    }
}
