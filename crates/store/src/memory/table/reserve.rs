//! Eviction order: which key is dropped for a new key, or for a log that grows.
//!
//! ```text
//!   expired keys                                    in every case, they go first
//!   the budget                                      up to its end; for an owner above its share up to the last tenth
//!   then (`when_full: evict`) a key that is not exhausted, and of these the one that is soonest full again:
//!       for an owner above its share                one of its own
//!       for any other                               one of an owner above its share,
//!                                                   or else of one that holds as much as the asking owner, or more
//! ```
//!
//! So a flood drops no key of an owner that holds less than the flood does and not more than its share. Nothing drops
//! an exhausted key. If no key can make way, the new key is refused.

use super::super::index::Slot;
use super::super::owners::{KEY_BYTES, OwnerId};
use super::{BLOCK, Budget, CHUNK, ShardTable};
use weir_core::algorithm::State;

/// Slots that one insertion may search for a free one; bounds the time under the lock.
const LOOK_AT: usize = 64;

/// Keys that it may search for one of an owner above its share, or of its own.
const LOOK_FURTHER: usize = 2048;

/// Exhausted keys that an insertion may skip in search of one that is not.
const PASS_OVER: usize = 8192;

/// Slots swept by every insertion, so that expired keys are dropped as fast as new ones are added.
const LOOK_AT_ALWAYS: usize = 4;

/// Free slots that an owner above its share leaves in every shard for the others: in a small budget the last tenth is
/// less than a chunk for each shard.
const SET_ASIDE: usize = CHUNK / 3;

/// Logs that may be evicted for one that grows.
const MOST_FOR_ONE: usize = 64;

/// The owner that needs slots, and the keys that may be evicted for it.
#[derive(Clone, Copy)]
pub(in super::super) struct Claim<'a> {
    pub(in super::super) owner: OwnerId,
    /// Keys due by then have expired.
    pub(in super::super) second: u64,
    /// True if unexpired keys may be evicted.
    pub(in super::super) evict: bool,
    /// Slots that must stay.
    pub(in super::super) keep: &'a [Slot],
}

impl ShardTable {
    /// Makes sure that `count` keys can be inserted.
    pub(in super::super) fn reserve(&mut self, count: usize, claim: Claim<'_>, budget: &Budget) -> bool {
        self.sweep_but(LOOK_AT_ALWAYS, claim.second, budget, claim.keep);
        if budget.owners().is_above_share(claim.owner, count * KEY_BYTES) && !self.has_spare(count, budget) {
            self.sweep_but(LOOK_AT, claim.second, budget, claim.keep);
            if !self.has_spare(count, budget)
                && !(0..count).all(|_| self.evict_own(claim, budget, |_| true).is_some())
            {
                return false;
            }
        }
        while self.free_count() < count || !self.reserve_index(count, |bytes| budget.take(bytes)) {
            let progress = (self.free_count() < count && self.grow(|bytes| budget.take(bytes)))
                || self.sweep_but(LOOK_AT, claim.second, budget, claim.keep) > 0
                || self.evict_for(claim, budget, |_| true).is_some();
            if !progress {
                return false;
            }
        }
        true
    }

    /// Brings a budget that logs have outgrown back within its limit: expired keys go, then logs. Dropping a key of
    /// another engine leaves its cell, and so would free nothing.
    pub(in super::super) fn relieve(&mut self, claim: Claim<'_>, budget: &Budget) -> bool {
        while budget.is_over() {
            let progress = self.sweep_but(LOOK_AT, claim.second, budget, claim.keep) > 0
                || self.evict_for(claim, budget, has_heap).is_some();
            if !progress {
                return false;
            }
        }
        true
    }

    /// Evicts other logs of the owner to make up for `bytes` of growth: the owner is above its share, and only the
    /// last tenth of the budget is left.
    pub(in super::super) fn make_up_for(&mut self, bytes: usize, claim: Claim<'_>, budget: &Budget) -> bool {
        let mut freed = 0;
        for dropped in 0..MOST_FOR_ONE {
            if freed >= bytes {
                break;
            }
            match self.evict_own(claim, budget, has_heap) {
                Some(bytes) => freed += bytes,
                None => return dropped > 0,
            }
        }
        true
    }

    /// True if the ids of calls may take `bytes` more. Expired ones go first.
    pub(in super::super) fn has_room_for_id(
        &mut self,
        bytes: usize,
        claim: Claim<'_>,
        budget: &Budget,
    ) -> bool {
        budget.owners().ids_have_room(bytes)
            || self.sweep_but(LOOK_AT, claim.second, budget, claim.keep) > 0
                && budget.owners().ids_have_room(bytes)
    }

    /// True if an owner above its share may have `count` more keys: the last tenth of the budget, and some slots of
    /// this shard, stay free all the same.
    fn has_spare(&mut self, count: usize, budget: &Budget) -> bool {
        let wanted = count + SET_ASIDE;
        if self.free_count() < wanted && !self.grow(|bytes| budget.take_unless_scarce(bytes)) {
            return false;
        }
        let after = self.free_count().saturating_sub(count);
        after >= SET_ASIDE
            && budget.has_spare(after * (BLOCK / CHUNK))
            && self.reserve_index(count, |bytes| budget.take_unless_scarce(bytes))
    }

    /// Evicts a key of the claim's own owner. Returns the heap bytes of its state.
    fn evict_own(
        &mut self,
        claim: Claim<'_>,
        budget: &Budget,
        eligible: impl Fn(&State) -> bool,
    ) -> Option<usize> {
        let rank = |owner: OwnerId| (owner == claim.owner).then_some(Rank::AboveShare);
        self.evict(claim, budget, |owner, state| rank(owner).filter(|_| eligible(state)))
    }

    /// Evicts a key of another owner, by rank.
    fn evict_for(
        &mut self,
        claim: Claim<'_>,
        budget: &Budget,
        eligible: impl Fn(&State) -> bool,
    ) -> Option<usize> {
        let owners = budget.owners();
        if owners.is_above_share(claim.owner, 0) {
            return self.evict_own(claim, budget, eligible);
        }
        let own = owners.held(claim.owner);
        let rank = |owner: OwnerId| match owner {
            _ if owner == claim.owner => Some(Rank::AsLarge),
            _ if owners.is_above_share(owner, 0) => Some(Rank::AboveShare),
            _ if owners.held(owner) >= own => Some(Rank::AsLarge),
            _ => None,
        };
        self.evict(claim, budget, |owner, state| rank(owner).filter(|_| eligible(state)))
    }

    /// Evicts a key that has a rank and is not exhausted: of the next few the first by rank, then by expiry.
    /// Exhausted keys are skipped by their expiry alone, which costs next to nothing, so that a run of them does not
    /// look like a full table.
    fn evict(
        &mut self,
        claim: Claim<'_>,
        budget: &Budget,
        rank: impl Fn(OwnerId, &State) -> Option<Rank>,
    ) -> Option<usize> {
        if !claim.evict {
            return None;
        }
        let some_above = budget.owners().some_is_above_share();
        let mut best: Option<(Rank, u64, Slot)> = None;
        let (mut candidates, mut seen) = (0, 0);
        for _ in 0..PASS_OVER.min(self.cells()) {
            let slot = self.advance();
            let expiry = self.expiry(slot);
            if expiry.exhausted() {
                continue;
            }
            let Some(state) = self.get(slot) else { continue };
            seen += 1;
            if let Some(rank) = rank(self.owner(slot), state).filter(|_| !claim.keep.contains(&slot)) {
                let candidate = (rank, expiry.at(), slot);
                best = Some(best.map_or(candidate, |best| best.min(candidate)));
                candidates += 1;
            }
            let is_first = matches!(best, Some((Rank::AboveShare, ..))) || !some_above;
            if candidates >= LOOK_AT && is_first || seen == LOOK_FURTHER {
                break;
            }
        }
        let (.., slot) = best?;
        let bytes = self.get(slot).map_or(0, State::heap_bytes);
        self.discard(slot, budget);
        budget.evicted();
        Some(bytes)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    AboveShare,
    /// The owner holds as much as the asking owner, or more.
    AsLarge,
}

fn has_heap(state: &State) -> bool {
    state.heap_bytes() > 0
}
