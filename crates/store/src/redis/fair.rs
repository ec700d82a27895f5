//! Decisions that wait for a node because enough are in flight: a queue for each owner of keys, served by turns.
//!
//! ```text
//!   owners in this round   B  A  D        each gives one call, then joins the next round if it has more
//!   owners in the next     C              B came last, so it is first: it waits for no other queue
//! ```
//!
//! An owner has one turn per round. One that has nothing left keeps its turn in mind until the round ends, so that it
//! cannot come again as a new one. So a flood of one owner holds another one up for what is in flight, and no owner waits
//! for more than one call of each other.

use std::collections::{HashMap, VecDeque};
use std::mem;

/// The queues of calls `T`, by a number of their owner.
pub(super) struct FairQueues<T> {
    owners: HashMap<usize, OwnerQueue<T>, foldhash::fast::RandomState>,
    /// Owners that wait and have not had their turn.
    this_round: VecDeque<usize>,
    /// Owners that wait and have had their turn.
    next_round: VecDeque<usize>,
    /// Owners that had their turn and do not wait.
    served: Vec<usize>,
    round: u64,
    len: usize,
}

struct OwnerQueue<T> {
    calls: VecDeque<T>,
    /// The round of its last turn.
    served_in: u64,
}

impl<T> Default for FairQueues<T> {
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

impl<T> FairQueues<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a call to the end of its owner's queue.
    pub(super) fn push(&mut self, owner: usize, call: T) {
        let queue =
            self.owners.entry(owner).or_insert_with(|| OwnerQueue { calls: VecDeque::new(), served_in: 0 });
        if queue.calls.is_empty() {
            if queue.served_in == self.round {
                self.next_round.push_back(owner);
            } else {
                self.this_round.push_front(owner);
            }
        }
        queue.calls.push_back(call);
        self.len += 1;
    }

    /// Takes a call of the owner whose turn it is: its first one that `keep` gives back. The others cost no turn.
    pub(super) fn pop(&mut self, mut keep: impl FnMut(T) -> Option<T>) -> Option<T> {
        while !self.is_empty() {
            if self.this_round.is_empty() {
                self.begin_round();
            }
            let owner = self.this_round.pop_front()?;
            let Some(queue) = self.owners.get_mut(&owner) else { continue };
            let mut found = None;
            while found.is_none()
                && let Some(call) = queue.calls.pop_front()
            {
                self.len -= 1;
                found = keep(call);
            }
            if found.is_none() {
                self.owners.remove(&owner);
                continue;
            }
            queue.served_in = self.round;
            if queue.calls.is_empty() {
                self.served.push(owner);
            } else {
                self.next_round.push_back(owner);
            }
            return found;
        }
        None
    }

    /// Takes the newest call of the longest queue, if it is longer than that of `owner` with one call more.
    pub(super) fn displace(&mut self, owner: usize) -> Option<T> {
        let own = self.owners.get(&owner).map_or(0, |queue| queue.calls.len()) + 1;
        let longest = self.owners.values_mut().max_by_key(|queue| queue.calls.len())?;
        // So it has at least two, and goes on waiting.
        if longest.calls.len() <= own {
            return None;
        }
        self.len -= 1;
        longest.calls.pop_back()
    }

    /// Drops the calls that are not `is_live`.
    pub(super) fn retain(&mut self, mut is_live: impl FnMut(&T) -> bool) {
        for queue in self.owners.values_mut() {
            let before = queue.calls.len();
            queue.calls.retain(&mut is_live);
            self.len -= before - queue.calls.len();
        }
        let round = self.round;
        self.owners.retain(|_, queue| !queue.calls.is_empty() || queue.served_in == round);
        let owners = &self.owners;
        let waits = |owner: &usize| owners.get(owner).is_some_and(|queue| !queue.calls.is_empty());
        self.this_round.retain(waits);
        self.next_round.retain(waits);
        self.served = owners.keys().copied().filter(|owner| !waits(owner)).collect();
    }

    fn begin_round(&mut self) {
        mem::swap(&mut self.this_round, &mut self.next_round);
        self.round += 1;
        for owner in self.served.drain(..) {
            if self.owners.get(&owner).is_some_and(|queue| queue.calls.is_empty()) {
                self.owners.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owners of the calls that are taken.
    fn owners(queues: &mut FairQueues<(usize, u32)>, count: usize) -> Vec<usize> {
        (0..count).map_while(|_| queues.pop(Some)).map(|(owner, _)| owner).collect()
    }

    fn flood(queues: &mut FairQueues<(usize, u32)>, owner: usize, calls: u32) {
        (0..calls).for_each(|call| queues.push(owner, (owner, call)));
    }

    #[test]
    fn each_owner_has_one_turn_in_a_round() {
        let mut queues = FairQueues::default();
        flood(&mut queues, 1, 5);
        flood(&mut queues, 2, 2);
        flood(&mut queues, 3, 1);
        assert_eq!(owners(&mut queues, 8), [3, 2, 1, 2, 1, 1, 1, 1]);
        assert!(queues.is_empty());
    }

    #[test]
    fn who_comes_beside_a_flood_is_next_and_not_twice() {
        let mut queues = FairQueues::default();
        flood(&mut queues, 1, 100);
        assert_eq!(owners(&mut queues, 3), [1, 1, 1]);
        flood(&mut queues, 2, 1);
        assert_eq!(owners(&mut queues, 1), [2]);
        flood(&mut queues, 2, 1);
        assert_eq!(owners(&mut queues, 2), [1, 2], "it had its turn in this round");
        // However often others come, the flood has its turn in each round.
        for other in 3..50 {
            flood(&mut queues, other, 1);
        }
        let taken = owners(&mut queues, 60);
        assert_eq!(taken.iter().filter(|owner| **owner > 2).count(), 47);
        assert_eq!(taken[47..], [1; 13]);
    }

    #[test]
    fn calls_of_one_owner_keep_their_order_and_lost_ones_take_no_turn() {
        let mut queues = FairQueues::default();
        flood(&mut queues, 1, 6);
        flood(&mut queues, 2, 2);
        let is_live = |call: &(usize, u32)| call.0 == 2 || call.1 % 3 == 2;
        let taken: Vec<_> = std::iter::from_fn(|| queues.pop(|call| Some(call).filter(is_live))).collect();
        assert_eq!(taken, [(2, 0), (1, 2), (2, 1), (1, 5)]);
        assert!(queues.is_empty());
    }

    #[test]
    fn the_newest_of_the_longest_queue_makes_room() {
        let mut queues = FairQueues::default();
        flood(&mut queues, 1, 4);
        flood(&mut queues, 2, 2);
        assert_eq!(queues.displace(1), None, "its own is the longest");
        assert_eq!(queues.displace(2), Some((1, 3)));
        assert_eq!(queues.displace(2), None, "both would have three");
        assert_eq!(queues.displace(3), Some((1, 2)));
        assert_eq!((queues.len(), owners(&mut queues, 9).len()), (4, 4));
    }

    #[test]
    fn nothing_is_left_of_owners_that_have_gone() {
        let mut queues = FairQueues::default();
        for owner in 0..1_000 {
            flood(&mut queues, owner, 2);
            flood(&mut queues, 1_000_000, 2);
            queues.retain(|call| call.0 == 1_000_000 || call.1 == 0);
            assert_eq!(queues.len(), 3);
            assert_eq!(owners(&mut queues, 9).len(), 3);
            assert!(queues.owners.len() <= 3, "{}", queues.owners.len());
        }
        flood(&mut queues, 1, 3);
        queues.retain(|_| false);
        assert_eq!((queues.len(), queues.pop(Some)), (0, None));
        flood(&mut queues, 1, 1);
        assert_eq!(owners(&mut queues, 2), [1]);
    }
}
