//! Calls that wait for a node because enough are in flight: a queue for each owner, served by turns.
//!
//! ```text
//!   owners in this round   B  A  D        each gives one call, then joins the next round if it has more
//!   owners in the next     C              B came last, so it is first: it waits for no other queue
//! ```
//!
//! An owner has one turn per round. One that has nothing left keeps its turn in mind until the round ends, so that it
//! cannot come again as a new one. So a flood of one owner holds another one up for what is in flight, and no owner waits
//! for more than one call of each other.
//!
//! The queue of an owner may itself be served by turns: decisions wait by caller, and within a caller by strategy.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::mem;

/// A queue of calls, each of an owner.
pub(super) trait TurnQueue: Default {
    type Owner: Copy;

    type Call;

    fn len(&self) -> usize;

    /// Adds a call behind those of its owner.
    fn push(&mut self, owner: Self::Owner, call: Self::Call);

    /// Takes the first call that `keep` gives back of the owner whose turn it is. Others cost no turn, but each takes one
    /// of `drops`, and without any left nothing is taken.
    fn pop(
        &mut self,
        drops: &mut usize,
        keep: &mut impl FnMut(Self::Call) -> Option<Self::Call>,
    ) -> Option<Self::Call>;

    /// Takes the newest call of the longest queue, unless that is the queue of `owner` with one call more.
    fn displace(&mut self, owner: Self::Owner) -> Option<Self::Call>;

    /// Takes the newest call of the longest queue.
    fn pop_newest(&mut self) -> Option<Self::Call>;

    fn retain(&mut self, is_live: &mut impl FnMut(&Self::Call) -> bool);
}

/// The queue of one owner, in the order of arrival.
impl<T> TurnQueue for VecDeque<T> {
    type Owner = ();
    type Call = T;

    fn len(&self) -> usize {
        self.len()
    }

    fn push(&mut self, (): (), call: T) {
        self.push_back(call);
    }

    fn pop(&mut self, drops: &mut usize, keep: &mut impl FnMut(T) -> Option<T>) -> Option<T> {
        while *drops > 0
            && let Some(call) = self.pop_front()
        {
            let kept = keep(call);
            if kept.is_some() {
                return kept;
            }
            *drops -= 1;
        }
        None
    }

    fn displace(&mut self, (): ()) -> Option<T> {
        None
    }

    fn pop_newest(&mut self) -> Option<T> {
        self.pop_back()
    }

    fn retain(&mut self, is_live: &mut impl FnMut(&T) -> bool) {
        self.retain(is_live);
    }
}

pub(super) struct FairQueues<K, Q> {
    owners: HashMap<K, OwnerQueue<Q>, foldhash::fast::RandomState>,
    /// Owners that wait and have not had their turn.
    this_round: VecDeque<K>,
    /// Owners that wait and have had their turn.
    next_round: VecDeque<K>,
    /// Owners that had their turn and do not wait.
    served: Vec<K>,
    round: u64,
    len: usize,
}

#[derive(Default)]
struct OwnerQueue<Q> {
    calls: Q,
    /// The round of its last turn.
    served_in: u64,
}

impl<K, Q> Default for FairQueues<K, Q> {
    fn default() -> Self {
        Self {
            owners: HashMap::default(),
            this_round: VecDeque::new(),
            next_round: VecDeque::new(),
            served: Vec::new(),
            round: 1,
            len: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, Q: TurnQueue> FairQueues<K, Q> {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of calls that leave before a new one of `owner`, if no others come.
    pub(super) fn ahead_of(&self, owner: K) -> usize {
        let own = self.owners.get(&owner).map_or(0, |queue| queue.calls.len());
        let waiting = self.this_round.len() + self.next_round.len();
        self.len.min(waiting.saturating_mul(own + 1))
    }

    fn begin_round(&mut self) {
        mem::swap(&mut self.this_round, &mut self.next_round);
        self.round += 1;
        for owner in self.served.drain(..) {
            if self.owners.get(&owner).is_some_and(|queue| queue.calls.len() == 0) {
                self.owners.remove(&owner);
            }
        }
    }

    fn longest(&mut self) -> Option<&mut Q> {
        self.owners.values_mut().map(|queue| &mut queue.calls).max_by_key(|calls| calls.len())
    }
}

impl<K: Copy + Eq + Hash, Q: TurnQueue> TurnQueue for FairQueues<K, Q> {
    type Owner = (K, Q::Owner);
    type Call = Q::Call;

    fn len(&self) -> usize {
        self.len
    }

    fn push(&mut self, (owner, within): Self::Owner, call: Q::Call) {
        let queue = self.owners.entry(owner).or_default();
        if queue.calls.len() == 0 {
            if queue.served_in == self.round {
                self.next_round.push_back(owner);
            } else {
                self.this_round.push_front(owner);
            }
        }
        queue.calls.push(within, call);
        self.len += 1;
    }

    fn pop(
        &mut self,
        drops: &mut usize,
        keep: &mut impl FnMut(Q::Call) -> Option<Q::Call>,
    ) -> Option<Q::Call> {
        while !self.is_empty() && *drops > 0 {
            if self.this_round.is_empty() {
                self.begin_round();
            }
            let owner = self.this_round.pop_front()?;
            let Some(queue) = self.owners.get_mut(&owner) else { continue };
            let before = queue.calls.len();
            let found = queue.calls.pop(drops, keep);
            self.len -= before - queue.calls.len();
            if found.is_none() {
                if queue.calls.len() > 0 {
                    self.this_round.push_front(owner);
                } else {
                    self.owners.remove(&owner);
                }
                continue;
            }
            queue.served_in = self.round;
            if queue.calls.len() == 0 {
                self.served.push(owner);
            } else {
                self.next_round.push_back(owner);
            }
            return found;
        }
        None
    }

    fn displace(&mut self, (owner, within): Self::Owner) -> Option<Q::Call> {
        let own = self.owners.get(&owner).map_or(0, |queue| queue.calls.len()) + 1;
        let longest = self.longest()?;
        // A queue that is longer has at least two calls, and goes on waiting.
        let displaced = if longest.len() > own {
            longest.pop_newest()
        } else {
            self.owners.get_mut(&owner)?.calls.displace(within)
        };
        self.len -= usize::from(displaced.is_some());
        displaced
    }

    fn pop_newest(&mut self) -> Option<Q::Call> {
        let newest = self.longest()?.pop_newest();
        self.len -= usize::from(newest.is_some());
        newest
    }

    fn retain(&mut self, is_live: &mut impl FnMut(&Q::Call) -> bool) {
        for queue in self.owners.values_mut() {
            queue.calls.retain(is_live);
        }
        self.len = self.owners.values().map(|queue| queue.calls.len()).sum();
        let round = self.round;
        self.owners.retain(|_, queue| queue.calls.len() > 0 || queue.served_in == round);
        let owners = &self.owners;
        let waits = |owner: &K| owners.get(owner).is_some_and(|queue| queue.calls.len() > 0);
        self.this_round.retain(waits);
        self.next_round.retain(waits);
        self.served = owners.keys().copied().filter(|owner| !waits(owner)).collect();
    }
}

#[cfg(test)]
mod tests;
