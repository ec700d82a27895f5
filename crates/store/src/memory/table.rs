//! One shard's keys: states in chunks that never move, found through an index of slot numbers.
//!
//! A hash table of the states themselves would stand half empty after each doubling; here only the
//! index doubles (4 bytes a place), and the states (48 bytes, and 4 for when they lapse) are dense.
//! Expiry times are in an array of their own, so that looking for lapsed keys reads little memory. Both
//! arrays of a chunk are one block, of a size that an allocator has at hand without waste.

use super::budget::Budget;
use super::hot::Hot;
use super::index::{Index, MAX_SLOTS, Slot};
use weir_core::algorithm::State;

/// Bytes of a chunk: a small power of two. For other sizes an allocator may take the next class of blocks above,
/// to have room for the alignment: 3,072 bytes for 64 slots took 3,584.
const BLOCK: usize = 2048;

/// Cells of a chunk.
const CHUNK: usize = BLOCK / (size_of::<Cell>() + size_of::<Lapse>());

/// Bits of a slot's number that tell its cell within a chunk. Some numbers have no cell: to divide by how many
/// there are would cost more than numbers do.
const CELL_BITS: u32 = CHUNK.next_power_of_two().trailing_zeros();

/// How many slots one insertion may look at to find room; a bound on the time under the lock.
const LOOK_AT: usize = 64;

/// How many exhausted keys an insertion may pass over in search of one that is not.
const PASS_OVER: usize = 8192;

/// Slots looked at by every insertion, so that lapsed keys go as fast as new ones come.
const LOOK_AT_ALWAYS: usize = 4;

/// The states of one shard. In this order, because a mutex has its lock in front: what a decision on the hot key
/// writes is in one cache line with the shard's lock, what finds another key in the next.
#[repr(C)]
pub(super) struct Table {
    hot: Hot,
    index: Index,
    // In the list itself they would move, and stand half empty, whenever it grows.
    #[allow(clippy::vec_box)]
    chunks: Vec<Box<Chunk>>,
    /// Head of the list of free slots, linked through the digests of free cells.
    free: Option<Slot>,
    free_count: u32,
    /// Where looking for lapsed keys goes on.
    hand: u32,
}

struct Chunk {
    cells: [Cell; CHUNK],
    lapses: [Lapse; CHUNK],
}

#[derive(Default)]
struct Cell {
    digest: [u64; 2],
    /// `None`: the cell is free, or its state is the hot one.
    state: Option<State>,
}

/// When a state is as good as absent, in whole seconds, and whether it is exhausted until then.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Lapse(u32);

impl Table {
    /// A table with its first chunk, so that no shard starves where others took the whole budget.
    pub(super) fn new(budget: &Budget) -> Self {
        let (index, chunks) = (Index::default(), Vec::new());
        let hot = Hot::default();
        let mut table = Self { index, chunks, free: None, free_count: 0, hand: 0, hot };
        table.grow(budget);
        table.reserve_index(CHUNK, budget);
        table
    }

    /// Keys in the table.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn find(&self, digest: u128) -> Option<Slot> {
        let digest = halves(digest);
        let find = || self.index.find(digest[0], |slot| self.cell(slot).digest == digest);
        self.hot.find(digest).or_else(find)
    }

    /// Counts that this slot is decided on, after which it may be the hot one.
    #[inline]
    pub(super) fn asked(&mut self, slot: Slot) {
        if self.hot.asked(slot) {
            self.heat(slot);
        }
    }

    /// The slot that this key most likely has, by what the index alone knows.
    pub(super) fn guess(&self, digest: u128) -> Option<Slot> {
        self.index.guess(digest as u64)
    }

    /// Reads where this key stands in the index, or near it; what is there means nothing.
    #[inline]
    pub(super) fn touch_index(&self, digest: u128) -> u32 {
        self.index.touch(digest as u64)
    }

    /// Reads a word of every cache line that a slot is in; what it adds up to means nothing.
    pub(super) fn touch(&self, slot: Slot) -> u64 {
        let cell = self.cell(slot);
        let state = u64::from(cell.state.is_some());
        cell.digest[1].wrapping_add(state).wrapping_add(u64::from(self.lapse(slot).0))
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&State> {
        if self.hot.has(slot) { self.hot.state() } else { self.cell(slot).state.as_ref() }
    }

    /// A state to be changed where it lies; [`Table::lapses`] or, if it is gone, [`Table::remove`] must
    /// follow.
    pub(super) fn state_mut(&mut self, slot: Slot) -> &mut Option<State> {
        if self.hot.has(slot) { self.hot.state_mut() } else { &mut self.cell_mut(slot).state }
    }

    /// Says when a state that has changed lapses.
    pub(super) fn lapses(&mut self, slot: Slot, lapses: u64, exhausted: bool) {
        let lapse = Lapse::new(lapses, exhausted);
        // Mostly it is the same second as before, and what is not written need not be fetched for it.
        if self.lapse(slot) != lapse {
            *self.lapse_mut(slot) = lapse;
        }
    }

    /// Makes sure that `count` keys can be inserted: by dropping lapsed ones, then by growing within
    /// the budget, then (if `evict`) by dropping one that is not exhausted. Keys in `keep` stay.
    pub(super) fn reserve(
        &mut self,
        count: usize,
        second: u64,
        budget: &Budget,
        evict: bool,
        keep: &[Slot],
    ) -> bool {
        self.sweep_but(LOOK_AT_ALWAYS, second, budget, keep);
        while self.free_count() < count || !self.reserve_index(count, budget) {
            let room = (self.free_count() < count && self.grow(budget))
                || self.sweep_but(LOOK_AT, second, budget, keep) > 0
                || (evict && self.evict(budget, keep, |_| true));
            if !room {
                return false;
            }
        }
        true
    }

    /// Brings a budget that logs have outgrown back within its limit: lapsed keys go, then (if `evict`)
    /// logs. Dropping a key of another engine leaves its cell, and so would free nothing.
    pub(super) fn relieve(&mut self, second: u64, budget: &Budget, evict: bool, keep: &[Slot]) -> bool {
        while budget.is_over() {
            let room = self.sweep_but(LOOK_AT, second, budget, keep) > 0
                || (evict && self.evict(budget, keep, |state| state.heap_bytes() > 0));
            if !room {
                return false;
            }
        }
        true
    }

    /// Stores a new key; [`Table::reserve`] has made room.
    pub(super) fn insert(&mut self, digest: u128, state: State, lapses: u64, exhausted: bool) -> Slot {
        let digest = halves(digest);
        let slot = self.free.unwrap_or_default();
        let cell = self.cell_mut(slot);
        let next = cell.digest[0];
        *cell = Cell { digest, state: Some(state) };
        *self.lapse_mut(slot) = Lapse::new(lapses, exhausted);
        self.free = Slot::try_from(next).ok();
        self.free_count -= 1;
        self.index.insert(digest[0], slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        let hash = self.cell(slot).digest[0];
        let Self { index, chunks, .. } = self;
        index.remove(hash, slot, |slot| cell_in(chunks, slot).digest[0]);
        self.release(slot);
    }

    /// Drops lapsed keys among the next `slots` slots.
    pub(super) fn sweep(&mut self, slots: usize, second: u64, budget: &Budget) {
        self.sweep_but(slots, second, budget, &[]);
    }

    fn sweep_but(&mut self, slots: usize, second: u64, budget: &Budget, keep: &[Slot]) -> usize {
        let mut dropped = 0;
        for _ in 0..slots.min(self.cells()) {
            let slot = self.advance();
            let lapsed = self.lapse(slot).at() <= second && self.get(slot).is_some();
            if lapsed && !keep.contains(&slot) {
                self.discard(slot, budget);
                dropped += 1;
            }
        }
        dropped
    }

    /// Drops the key that is soonest as good as new, of the next few that are `eligible` and not
    /// exhausted. Exhausted ones are passed over by their expiry alone, which costs next to nothing, so
    /// that a run of them does not look like a full table.
    fn evict(&mut self, budget: &Budget, keep: &[Slot], eligible: impl Fn(&State) -> bool) -> bool {
        let mut soonest: Option<Slot> = None;
        let mut candidates = 0;
        for _ in 0..PASS_OVER.min(self.cells()) {
            let slot = self.advance();
            let lapse = self.lapse(slot);
            if lapse.exhausted() || !self.get(slot).is_some_and(&eligible) || keep.contains(&slot) {
                continue;
            }
            if soonest.is_none_or(|best| lapse.at() < self.lapse(best).at()) {
                soonest = Some(slot);
            }
            candidates += 1;
            if candidates == LOOK_AT {
                break;
            }
        }
        let Some(slot) = soonest else { return false };
        self.discard(slot, budget);
        budget.evicted();
        true
    }

    fn discard(&mut self, slot: Slot, budget: &Budget) {
        let bytes = self.get(slot).map_or(0, State::heap_bytes);
        self.remove(slot);
        budget.moved(bytes, 0);
    }

    fn grow(&mut self, budget: &Budget) -> bool {
        let first = self.chunks.len() << CELL_BITS;
        if first + CHUNK > MAX_SLOTS || !budget.take(BLOCK) {
            return false;
        }
        let cells = std::array::from_fn(|_| Cell::default());
        self.chunks.push(Box::new(Chunk { cells, lapses: [Lapse::default(); CHUNK] }));
        for slot in (first..first + CHUNK).rev() {
            self.release(slot as Slot);
        }
        true
    }

    fn reserve_index(&mut self, count: usize, budget: &Budget) -> bool {
        let bytes = self.index.growth(count);
        if bytes > 0 && !budget.take(bytes) {
            return false;
        }
        let Self { index, chunks, .. } = self;
        index.grow(count, |slot| cell_in(chunks, slot).digest[0]);
        true
    }

    #[cold]
    fn heat(&mut self, slot: Slot) {
        let Cell { digest, state } = self.cell_mut(slot);
        let (digest, state) = (*digest, state.take());
        if let Some((cooled, state)) = self.hot.take(slot, digest, state) {
            self.cell_mut(cooled).state = Some(state);
        }
    }

    /// Puts a slot on the free list.
    fn release(&mut self, slot: Slot) {
        self.hot.forget(slot);
        let next = self.free.map_or(u64::MAX, u64::from);
        *self.cell_mut(slot) = Cell { digest: [next, 0], state: None };
        self.free = Some(slot);
        self.free_count += 1;
    }

    fn advance(&mut self) -> Slot {
        let cell = self.hand as usize;
        // A number of a slot, and of those there are less than u32::MAX.
        self.hand = if cell + 1 >= self.cells() { 0 } else { cell as u32 + 1 };
        let (chunk, place) = (cell / CHUNK, cell % CHUNK);
        ((chunk << CELL_BITS) + place) as Slot
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

    fn lapse(&self, slot: Slot) -> Lapse {
        let (chunk, place) = at(slot);
        self.chunks[chunk].lapses[place]
    }

    fn lapse_mut(&mut self, slot: Slot) -> &mut Lapse {
        let (chunk, place) = at(slot);
        &mut self.chunks[chunk].lapses[place]
    }
}

impl Lapse {
    const EXHAUSTED: u32 = 1 << 31;
    const FOREVER: u32 = Self::EXHAUSTED - 1;

    fn new(second: u64, exhausted: bool) -> Self {
        let second = u32::try_from(second).unwrap_or(Self::FOREVER).min(Self::FOREVER);
        Self(if exhausted { second | Self::EXHAUSTED } else { second })
    }

    /// 68 years after the start is beyond what can be told: such a state never lapses.
    fn at(self) -> u64 {
        let second = self.0 & Self::FOREVER;
        if second == Self::FOREVER { u64::MAX } else { u64::from(second) }
    }

    fn exhausted(self) -> bool {
        self.0 & Self::EXHAUSTED != 0
    }
}

fn cell_in(chunks: &[Box<Chunk>], slot: Slot) -> &Cell {
    let (chunk, place) = at(slot);
    &chunks[chunk].cells[place]
}

/// The chunk of a slot, and its place there.
#[inline]
fn at(slot: Slot) -> (usize, usize) {
    const CELLS: Slot = (1 << CELL_BITS) - 1;
    ((slot >> CELL_BITS) as usize, (slot & CELLS) as usize)
}

fn halves(digest: u128) -> [u64; 2] {
    [digest as u64, (digest >> 64) as u64]
}
