//! Batching: joins calls that are ready at the same moment.

use super::{ScriptCall, ScriptRequest};
use crate::cost::ScriptCost;
use crate::redis::callers::append;

/// Cluster slots that the keys of one call may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::redis) enum CallSlots {
    /// Any: the server is not a cluster node.
    Any,
    Apart,
    /// All slots of the node; the keys of a call over several slots are not declared.
    Together,
}

impl<R: ScriptRequest> ScriptCall<R> {
    /// Joins calls, up to a cost. Calls of one lane and form keep their order.
    pub(in crate::redis) fn group(calls: &mut Vec<Self>, slots: CallSlots, most: ScriptCost) {
        if calls.len() < 2 {
            return;
        }
        // Usually there is one lane, and nothing is sorted.
        if calls.windows(2).any(|pair| pair[0].lane(slots) != pair[1].lane(slots)) {
            calls.sort_by_key(|call| call.lane(slots));
        }
        for lane in calls.chunk_by_mut(|a, b| a.lane(slots) == b.lane(slots)) {
            R::arrange(lane);
        }
        let mut grouped: Vec<Self> = Vec::with_capacity(4);
        // The current lane, and the index of its first call.
        let (mut lane, mut begin) = (None, 0);
        for mut call in calls.drain(..) {
            let own = Some(call.lane(slots));
            if own != lane {
                (lane, begin) = (own, grouped.len());
            }
            let mut same_lane = grouped.iter_mut().skip(begin).rev();
            // Only the last call like it is a candidate, so that no request overtakes an earlier one.
            match same_lane.find(|open| open.is_like(&call)).filter(|open| open.has_room_for(&call, most)) {
                Some(open) => open.join(&mut call),
                None => grouped.push(call),
            }
        }
        *calls = grouped;
    }

    /// Returns the lane: the slot, if a call may have only one, and the ASKING flag. Calls of different lanes are never
    /// joined.
    fn lane(&self, slots: CallSlots) -> (Option<u16>, bool) {
        let is_apart = slots == CallSlots::Apart || (slots == CallSlots::Together && self.alone);
        (self.slot().filter(|_| is_apart), self.asking)
    }

    fn slot(&self) -> Option<u16> {
        self.first().map(|first| first.target().slot)
    }

    fn is_like(&self, other: &Self) -> bool {
        let both = self.first().zip(other.first());
        self.form == other.form && both.is_some_and(|(first, other)| first.is_like(other))
    }

    fn has_room_for(&self, other: &Self, most: ScriptCost) -> bool {
        self.cost + other.cost <= most && other.first().is_some_and(|other| other.fits(&self.requests))
    }

    fn join(&mut self, other: &mut Self) {
        self.spans |= self.slot() != other.slot();
        self.cost += other.cost;
        self.time.begun = self.time.begun.min(other.time.begun);
        append(&mut self.requests, &mut other.requests);
        self.callers.append(&mut other.callers);
    }
}
