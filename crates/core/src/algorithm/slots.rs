//! Bucketed window: a log whose entries are rounded down to slots, so that it stays small.
//!
//! Slot number n is the time from n · width to (n + 1) · width since the epoch; a hit counts until
//! `count` slots have begun, its own included:
//!
//! ```text
//!   admitted ⇔ hits of the newest `count` slots + cost ≤ limit
//!   lenient: count = buckets          a hit counts for window − width … window
//!   strict:  count = buckets + 1      a hit counts for window … window + width
//! ```
//!
//! Promise: at most `limit` in any `count` slots, and so, strict, never more than `limit` in any span of
//! the window; lenient, more by at most what fits into one slot. Memory: an entry per slot that was hit.
//! A state of other slots counts whole, and takes what is charged meanwhile, until it would have been
//! fresh under its own. Twins: `lua/slots.lua`, and `lua/ring.lua` where more than 361 slots count: Redis keeps those
//! in another layout, and so under another engine's name. What a limit answers does not depend on the layout.
//! Sources: the ring buffers of redback (strict) and of sliding-limiter (lenient).

use super::Reading;
use weir_units::{CEILING, LATEST};

/// The most buckets that a window may have.
pub const MAX_BUCKETS: u64 = 3600;

/// The most slots whose states Redis reads and writes whole.
const MOST_WHOLE: u64 = 361;

/// The engine's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Length of a slot, in microseconds.
    pub width: u64,
    /// How many slots count, including the current one.
    pub count: u64,
}

/// Stored state: the slots that were hit, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    slots: Slots,
    hit: Vec<Hit>,
}

/// One slot that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hit {
    start: u64,
    hits: u64,
}

impl Slots {
    /// The slots as of now. `origin` is the newest slot's start, `span` how long it counts.
    pub(super) fn read(&self, state: Option<&State>, now: u64) -> Reading {
        let Some((state, newest)) = state.and_then(|state| Some((state, state.hit.last()?))) else {
            return self.opening(now);
        };
        let span = state.slots.span();
        let ahead = newest.start.saturating_sub(now);
        let shift = if ahead > span { newest.start - (now - now % state.slots.width) } else { 0 };
        let origin = newest.start - shift;
        let at = now.max(origin);
        if at - origin >= span {
            return self.opening(at);
        }
        let mut reading = Reading { level: 0, at, origin, extra: 0, shift, span };
        let counts = |hit: &&Hit| state.slots != *self || hit.left(&reading) > 0;
        reading.level = state.hit.iter().filter(counts).map(|hit| hit.hits).sum();
        reading
    }

    /// Microseconds until `excess` units have left: slot by slot, or all at once where they are another's.
    pub(super) fn wait(&self, state: Option<&State>, reading: &Reading, excess: u64) -> u64 {
        let last = reading.span - (reading.at - reading.origin);
        let Some(state) = state.filter(|state| state.slots == *self && excess < reading.level) else {
            return last;
        };
        let mut freed = 0;
        let mut live = state.hit.iter().filter(|hit| hit.left(reading) > 0);
        let frees_enough = |hit: &&Hit| {
            freed += hit.hits;
            freed >= excess
        };
        live.find(frees_enough).map_or(last, |hit| hit.left(reading))
    }

    /// Sets the level: a charge goes into the current slot, a refund out of the newest.
    pub(super) fn write(&self, state: &mut State, reading: &mut Reading, level: u64) {
        if state.slots != *self {
            state.hit.clear();
            state.hit.push(Hit { start: reading.origin, hits: level });
            return;
        }
        state.hit.retain(|hit| hit.left(reading) > 0);
        for hit in &mut state.hit {
            hit.start = hit.start.saturating_sub(reading.shift);
        }
        if level > reading.level {
            let (start, hits) = (reading.at - reading.at % self.width, level - reading.level);
            match state.hit.last_mut() {
                Some(newest) if newest.start == start => newest.hits += hits,
                _ => state.hit.push(Hit { start, hits }),
            }
        }
        let mut back = reading.level.saturating_sub(level);
        while let Some(newest) = state.hit.last_mut().filter(|_| back > 0) {
            let taken = back.min(newest.hits);
            (newest.hits, back) = (newest.hits - taken, back - taken);
            if newest.hits == 0 {
                state.hit.pop();
            }
        }
        reading.origin = state.hit.last().map_or(reading.origin, |newest| newest.start);
    }

    /// Cost charged in the newest `parts` slots, including the current one.
    pub(super) fn newest(&self, state: Option<&State>, reading: &Reading, parts: u64) -> u64 {
        let Some(state) = state else { return 0 };
        let back = parts.clamp(1, self.count) - 1;
        let oldest = (reading.at - reading.at % self.width).saturating_sub(back.saturating_mul(self.width));
        if state.slots != *self {
            return if reading.origin >= oldest { reading.level } else { 0 };
        }
        let counts = |hit: &&Hit| hit.left(reading) > 0 && hit.start.saturating_sub(reading.shift) >= oldest;
        state.hit.iter().filter(counts).map(|hit| hit.hits).sum()
    }

    /// True if there are so many slots that Redis keeps them in the other layout.
    pub(super) const fn is_many(&self) -> bool {
        self.count > MOST_WHOLE
    }

    /// An empty state.
    pub(super) const fn empty(self) -> State {
        State { slots: self, hit: Vec::new() }
    }

    /// How long a hit counts from its slot's start.
    const fn span(&self) -> u64 {
        self.width * self.count
    }

    fn opening(&self, at: u64) -> Reading {
        Reading { span: self.span(), ..Reading::fresh(at, at) }
    }
}

impl State {
    /// Slots that were hit: starts and hits, oldest first, of which all but the newest hold `rest`.
    pub(super) fn of(slots: Slots, hit: Vec<(u64, u64)>, rest: u64) -> Option<Self> {
        let (newest, older) = hit.split_last()?;
        let held = older.iter().try_fold(0, |held: u64, (_, hits)| held.checked_add(*hits));
        let fine = held == Some(rest)
            && hit.is_sorted_by_key(|(start, _)| *start)
            && newest.0 <= LATEST.0
            && rest.checked_add(newest.1).is_some_and(|level| level <= CEILING);
        let hit = hit.into_iter().map(|(start, hits)| Hit { start, hits }).collect();
        fine.then_some(Self { slots, hit })
    }

    /// When the newest slot began.
    pub(super) fn begins(&self) -> Option<u64> {
        self.hit.last().map(|newest| newest.start)
    }

    /// Bytes by which a charge at `now` may make the slots grow: none where it joins the newest, or where the oldest
    /// no longer counts.
    pub(super) fn growth(&self, slots: &Slots, now: u64) -> usize {
        let is_full = self.hit.len() == self.hit.capacity();
        let joins = self.hit.last().is_some_and(|newest| now < newest.start.saturating_add(slots.width));
        let frees = self.hit.first().is_some_and(|oldest| oldest.start.saturating_add(slots.span()) <= now);
        if is_full && !joins && !frees { self.heap_bytes() } else { 0 }
    }

    /// Bytes that the slots take.
    pub(super) fn heap_bytes(&self) -> usize {
        self.hit.capacity() * size_of::<Hit>()
    }
}

impl Hit {
    /// How much longer it counts.
    fn left(&self, reading: &Reading) -> u64 {
        reading.span.saturating_sub(reading.at - self.start.saturating_sub(reading.shift))
    }
}
