//! The counter of one key on this node, and the callers that wait for the store's answer about it.

use std::sync::Arc;

use weir_core::approximate::{CountOp, LocalAnswer, NodeCount, NodePush};

use crate::CounterKey;
use crate::approximate::line::KeyLine;
use crate::approximate::moment::{NodeMoment, NodeWindow};
use crate::approximate::places::PlaceSet;
use crate::approximate::verdict::CountVerdict;

pub(in crate::approximate) struct KeyEntry {
    pub(in crate::approximate) set: Arc<PlaceSet>,
    pub(in crate::approximate) key: CounterKey,
    pub(in crate::approximate) server: u64,
    pub(in crate::approximate) count: NodeCount,
    /// The place under which the node counted last, and the limit.
    place: u64,
    limit: u64,
    /// True while the key is among those of which the node owes something.
    is_owing: bool,
    pub(in crate::approximate) line: KeyLine,
}

impl KeyEntry {
    pub(in crate::approximate) fn new(set: &Arc<PlaceSet>, key: CounterKey, server: u64) -> Self {
        Self {
            set: Arc::clone(set),
            key,
            server,
            count: NodeCount::default(),
            place: 0,
            limit: 0,
            is_owing: false,
            line: KeyLine::default(),
        }
    }

    pub(in crate::approximate) fn decide(
        &mut self,
        window: &NodeWindow,
        (op, cost, limit): (CountOp, u64, u64),
        digest: u128,
    ) -> Option<CountVerdict> {
        // Of a larger cost the limit may be granted.
        let cost = if op == CountOp::AtMost { cost.min(limit) } else { cost };
        (self.place, self.limit) = (window.local.place, limit);
        let share = self.set.bound.share();
        let answer = self.count.decide(window.local, (cost, limit, share), window.now, window.ends);
        match answer {
            // The store grants what is left.
            LocalAnswer::Denied { used, .. } if op == CountOp::AtMost && used < limit => return None,
            LocalAnswer::Allowed { .. } if self.count.owes() > 0 && !self.is_owing => {
                self.is_owing = true;
                self.set.owe(digest);
            }
            _ => {}
        }
        CountVerdict::of_node(answer, cost, limit, window)
    }

    /// Returns the push with a charge that the store decides, after [`KeyEntry::decide`] could not.
    pub(in crate::approximate) fn charge(&mut self) -> NodePush {
        self.count.charge(self.place)
    }

    /// Returns the push with another call to the store.
    pub(in crate::approximate) fn push(&mut self, window: &NodeWindow) -> NodePush {
        self.count.enter(window.local);
        self.place = window.local.place;
        self.count.push(self.place)
    }

    /// Returns the units that the node owes of this key, and its limit. `None` if it owes none, or can push no more. While
    /// a charge is on its way, which shows it too, it is to be asked for again.
    pub(in crate::approximate) fn owed(
        &mut self,
        moment: &NodeMoment<'_>,
        digest: u128,
    ) -> Option<(NodePush, u64)> {
        if !self.owes(moment) {
            self.is_owing = false;
            return None;
        }
        if self.line.is_in_flight {
            self.set.owe(digest);
            return None;
        }
        Some((self.count.push(self.place), self.limit))
    }

    /// True if the node owes something that can still be pushed.
    pub(in crate::approximate) fn owes(&self, moment: &NodeMoment<'_>) -> bool {
        self.count.owes() > 0 && !moment.is_past(self.count.window(), &self.set, self.server)
    }

    /// After a push was answered, or failed: the key stays among those that owe if it does.
    pub(in crate::approximate) fn pushed(&mut self, digest: u128) {
        self.is_owing = self.count.owes() > 0;
        if self.is_owing {
            self.set.owe(digest);
        }
    }
}
