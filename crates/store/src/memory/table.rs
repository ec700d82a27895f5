//! One shard's keys: states in chunks that never move, found through an index of slot numbers.
//!
//! A hash table of the states themselves would stand half empty after each doubling; here only the
//! index doubles (4 bytes a place), and the states (48 bytes, and 4 for when they expiry) are dense.
//! Expiry times are in an array of their own, so that the search for expired keys reads little memory. Both arrays of
//! a chunk are one block, of a size that allocators serve without waste.
//!
//! A cell has 112 bits of its key's digest, and in the other 16 the number of its owner (`owners.rs`). The eviction
//! order is in `reserve.rs`.

mod redate;
mod reserve;

use super::budget::Budget;
use super::hot::Hot;
use super::index::{Index, MAX_SLOTS, Slot};
use super::owners::{KEY_BYTES, OwnerId};
pub(super) use reserve::Claim;
use weir_core::algorithm::State;

/// Bytes of a chunk: a small power of two. For other sizes an allocator may take the next class of blocks above,
/// to have room for the alignment: 3,072 bytes for 64 slots took 3,584.
const BLOCK: usize = 2048;

const CHUNK: usize = BLOCK / (size_of::<Cell>() + size_of::<Expiry>());

/// Bits of a slot's number that select its cell within a chunk. Some numbers have no cell: shifting is cheaper than
/// dividing, and numbers are plentiful.
const CELL_BITS: u32 = CHUNK.next_power_of_two().trailing_zeros();

/// Bits of a digest's upper half that are the key's. The others are its owner's.
const KEY_BITS: u32 = u64::BITS - OwnerId::BITS;
const KEY_MASK: u64 = (1 << KEY_BITS) - 1;

/// The states of one shard. Field order matters, because a mutex has its lock in front: a decision on the hot key
/// writes to the lock's cache line only, and the fields that find another key are in the next.
#[repr(C)]
pub(super) struct ShardTable {
    hot: Hot,
    index: Index,
    // In the list itself they would move, and half of it would be empty, whenever it grows.
    #[allow(clippy::vec_box)]
    chunks: Vec<Box<Chunk>>,
    /// Head of the list of free slots, linked through the digests of free cells; [`NO_SLOT`] if there is none.
    free: Slot,
    free_count: u32,
    /// Slot at which the search for expired keys continues.
    hand: Slot,
    /// Steps of the wall clock included in the expiry times (`memory/time.rs`).
    ahead: i32,
}

const NO_SLOT: Slot = Slot::MAX;

struct Chunk {
    cells: [Cell; CHUNK],
    expires: [Expiry; CHUNK],
}

#[derive(Default)]
struct Cell {
    /// The key's digest; the upper bits of the second half, from [`KEY_BITS`] on, are the owner's number.
    digest: [u64; 2],
    /// `None`: the cell is free, or its state is the hot one.
    state: Option<State>,
}

/// Expiry of a state, in whole seconds, and a flag: exhausted until then.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Expiry(u32);

impl ShardTable {
    /// A table with its first chunk, so that no shard starves if others took the whole budget.
    pub(super) fn new(budget: &Budget) -> Self {
        let (index, chunks) = (Index::default(), Vec::new());
        let hot = Hot::default();
        let mut table = Self { index, chunks, free: NO_SLOT, free_count: 0, hand: 0, ahead: 0, hot };
        table.grow(|bytes| budget.take(bytes));
        table.reserve_index(CHUNK, |bytes| budget.take(bytes));
        table
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    #[inline]
    pub(super) fn find(&self, digest: u128) -> Option<Slot> {
        let digest = halves(digest);
        let find = || self.index.find(digest[0], |slot| self.cell(slot).is_of(digest));
        self.hot.find(digest).or_else(find)
    }

    /// Counts a use of this slot. Frequently used, it becomes the hot one.
    #[inline]
    pub(super) fn asked(&mut self, slot: Slot) {
        if self.hot.asked(slot) {
            self.heat(slot);
        }
    }

    /// The likely slot of this key, by the index alone.
    pub(super) fn guess(&self, digest: u128) -> Option<Slot> {
        self.index.guess(digest as u64)
    }

    /// Prefetches the index at this key. The value returned is meaningless.
    #[inline]
    pub(super) fn touch_index(&self, digest: u128) -> u32 {
        self.index.touch(digest as u64)
    }

    /// Prefetches every cache line of a slot. The value returned is meaningless.
    pub(super) fn touch(&self, slot: Slot) -> u64 {
        let cell = self.cell(slot);
        let state = u64::from(cell.state.is_some());
        cell.digest[1].wrapping_add(state).wrapping_add(u64::from(self.expiry(slot).0))
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&State> {
        if self.hot.has(slot) { self.hot.state() } else { self.cell(slot).state.as_ref() }
    }

    /// A state to change in place; the caller must then call [`ShardTable::expires`] or, if it is gone,
    /// [`ShardTable::remove`].
    pub(super) fn state_mut(&mut self, slot: Slot) -> &mut Option<State> {
        if self.hot.has(slot) { self.hot.state_mut() } else { &mut self.cell_mut(slot).state }
    }

    /// Sets the expiry of a changed state.
    pub(super) fn expires(&mut self, slot: Slot, expires: u64, exhausted: bool) {
        let expiry = Expiry::new(expires, exhausted);
        // Mostly it is unchanged, and without a write its cache line need not be fetched.
        if self.expiry(slot) != expiry {
            *self.expiry_mut(slot) = expiry;
        }
    }

    /// Stores a new key of `owner`; [`ShardTable::reserve`] has made room. The state's heap bytes are counted
    /// already.
    pub(super) fn insert(
        &mut self,
        digest: u128,
        state: State,
        (expires, exhausted): (u64, bool),
        owner: OwnerId,
        budget: &Budget,
    ) -> Slot {
        let [first, second] = halves(digest);
        let slot = if self.free == NO_SLOT { 0 } else { self.free };
        let cell = self.cell_mut(slot);
        let next = cell.digest[0];
        *cell = Cell { digest: [first, second | u64::from(owner) << KEY_BITS], state: Some(state) };
        *self.expiry_mut(slot) = Expiry::new(expires, exhausted);
        self.free = Slot::try_from(next).unwrap_or(NO_SLOT);
        self.free_count -= 1;
        self.index.insert(first, slot);
        budget.owners().took(owner, KEY_BYTES);
        slot
    }

    /// Removes a key whose state has no heap bytes left.
    pub(super) fn remove(&mut self, slot: Slot, budget: &Budget) {
        budget.owners().gave(self.owner(slot), KEY_BYTES);
        let hash = self.cell(slot).digest[0];
        let Self { index, chunks, .. } = self;
        index.remove(hash, slot, |slot| cell_in(chunks, slot).digest[0]);
        self.release(slot);
    }

    pub(super) fn owner(&self, slot: Slot) -> OwnerId {
        // The bits above are an owner's number.
        (self.cell(slot).digest[1] >> KEY_BITS) as OwnerId
    }

    /// Drops expired keys among the next `slots` slots.
    pub(super) fn sweep(&mut self, slots: usize, second: u64, budget: &Budget) {
        self.sweep_but(slots, second, budget, &[]);
    }

    fn sweep_but(&mut self, slots: usize, second: u64, budget: &Budget, keep: &[Slot]) -> usize {
        let mut dropped = 0;
        for _ in 0..slots.min(self.cells()) {
            let slot = self.advance();
            // Nearly all are not due, or free.
            if self.expiry(slot).at() > second {
                continue;
            }
            if self.get(slot).is_some() && !keep.contains(&slot) {
                self.discard(slot, budget);
                dropped += 1;
            }
        }
        dropped
    }

    /// Removes a key and its heap bytes.
    pub(super) fn discard(&mut self, slot: Slot, budget: &Budget) {
        let bytes = self.get(slot).map_or(0, State::heap_bytes);
        budget.moved(self.owner(slot), bytes, 0);
        self.remove(slot, budget);
    }

    /// Adds a chunk, if `take` has the bytes for it.
    fn grow(&mut self, take: impl FnOnce(usize) -> bool) -> bool {
        let first = self.chunks.len() << CELL_BITS;
        if first + CHUNK > MAX_SLOTS || !take(BLOCK) {
            return false;
        }
        let cells = std::array::from_fn(|_| Cell::default());
        self.chunks.push(Box::new(Chunk { cells, expires: [Expiry::default(); CHUNK] }));
        for slot in (first..first + CHUNK).rev() {
            self.release(slot as Slot);
        }
        true
    }

    /// Makes the index large enough for `count` more keys, if `take` has the bytes for it.
    fn reserve_index(&mut self, count: usize, take: impl FnOnce(usize) -> bool) -> bool {
        let bytes = self.index.growth(count);
        if bytes == 0 {
            return true;
        }
        if !take(bytes) {
            return false;
        }
        let Self { index, chunks, .. } = self;
        index.grow(count, |slot| cell_in(chunks, slot).digest[0]);
        true
    }

    #[cold]
    fn heat(&mut self, slot: Slot) {
        let Cell { digest: [first, second], state } = self.cell_mut(slot);
        let (digest, state) = ([*first, *second & KEY_MASK], state.take());
        if let Some((cooled, state)) = self.hot.take(slot, digest, state) {
            self.cell_mut(cooled).state = Some(state);
        }
    }

    /// Puts a slot on the free list. It never expires, so that a search for expired keys passes it over.
    fn release(&mut self, slot: Slot) {
        self.hot.forget(slot);
        let next = u64::from(self.free);
        *self.cell_mut(slot) = Cell { digest: [next, 0], state: None };
        *self.expiry_mut(slot) = Expiry::new(u64::MAX, false);
        self.free = slot;
        self.free_count += 1;
    }

    /// Returns the slot where the search for expired keys continues, and moves on to the next one.
    fn advance(&mut self) -> Slot {
        let slot = self.hand;
        let (chunk, place) = at(slot);
        self.hand = if place + 1 < CHUNK {
            slot + 1
        } else if chunk + 1 < self.chunks.len() {
            // A slot's number, which is less than u32::MAX.
            ((chunk + 1) << CELL_BITS) as Slot
        } else {
            0
        };
        slot
    }

    /// The owner of each key, and the heap bytes of its state.
    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = (OwnerId, usize)> {
        let slots = (0..self.cells()).map(slot_of_cell);
        slots.filter_map(|slot| Some((self.owner(slot), self.get(slot)?.heap_bytes())))
    }

    fn free_count(&self) -> usize {
        self.free_count as usize
    }

    fn cells(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    fn cell(&self, slot: Slot) -> &Cell {
        cell_in(&self.chunks, slot)
    }

    fn cell_mut(&mut self, slot: Slot) -> &mut Cell {
        let (chunk, place) = at(slot);
        &mut self.chunks[chunk].cells[place]
    }

    fn expiry(&self, slot: Slot) -> Expiry {
        let (chunk, place) = at(slot);
        self.chunks[chunk].expires[place]
    }

    fn expiry_mut(&mut self, slot: Slot) -> &mut Expiry {
        let (chunk, place) = at(slot);
        &mut self.chunks[chunk].expires[place]
    }
}

impl Cell {
    /// True if it has the key of this digest, as split by [`halves`].
    #[inline]
    fn is_of(&self, [first, second]: [u64; 2]) -> bool {
        self.digest[0] == first && self.digest[1] & KEY_MASK == second
    }
}

impl Expiry {
    const EXHAUSTED: u32 = 1 << 31;
    const FOREVER: u32 = Self::EXHAUSTED - 1;

    fn new(second: u64, exhausted: bool) -> Self {
        let second = u32::try_from(second).unwrap_or(Self::FOREVER).min(Self::FOREVER);
        Self(if exhausted { second | Self::EXHAUSTED } else { second })
    }

    /// Never, if it is 68 years after the start or later: that cannot be stored.
    fn at(self) -> u64 {
        let second = self.0 & Self::FOREVER;
        if second == Self::FOREVER { u64::MAX } else { u64::from(second) }
    }

    fn exhausted(self) -> bool {
        self.0 & Self::EXHAUSTED != 0
    }
}

/// The slot of a cell, of those in all chunks. There are less than u32::MAX.
fn slot_of_cell(cell: usize) -> Slot {
    (((cell / CHUNK) << CELL_BITS) + cell % CHUNK) as Slot
}

fn cell_in(chunks: &[Box<Chunk>], slot: Slot) -> &Cell {
    let (chunk, place) = at(slot);
    &chunks[chunk].cells[place]
}

#[inline]
fn at(slot: Slot) -> (usize, usize) {
    const CELLS: Slot = (1 << CELL_BITS) - 1;
    ((slot >> CELL_BITS) as usize, (slot & CELLS) as usize)
}

/// The halves of a digest, without the owner's bits: 112 bits distinguish keys.
#[inline]
fn halves(digest: u128) -> [u64; 2] {
    [digest as u64, (digest >> 64) as u64 & KEY_MASK]
}
