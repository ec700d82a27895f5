//! Bucketed window: a log whose entries are rounded down to parts of the window, so that it stays small.
//!
//! Windows follow one another from the epoch, and each has the same parts: all `width` long, but the last, which may be
//! shorter. Parts are counted through all windows. A hit counts until `count` parts have begun, its own included:
//!
//! ```text
//!   part(time)   = ⌊time / window⌋ · parts + ⌊(time mod window) / width⌋
//!   admitted ⇔ hits of the newest `count` parts + cost ≤ limit
//!   lenient: count = parts          a hit counts for window − width of its part … window
//!   strict:  count = parts + 1      a hit counts for window … window + width of its part
//! ```
//!
//! Promise: at most `limit` in any `count` parts, and so, strict, never more than `limit` in any span of the window, because a
//! window that begins anywhere touches at most `parts + 1` parts; lenient, more by at most what fits into one part. Memory:
//! an entry per part that was hit. A state of other parts counts whole, and takes what is charged meanwhile, until it would
//! have been fresh under its own. Twins: `lua/slots.lua`, and `lua/sparse.lua` where more than 361 parts count: Redis keeps
//! those in another layout, and so under another engine's name. What a limit answers does not depend on the layout.
//! Sources: the ring buffers of redback (strict) and of sliding-limiter (lenient), and the accuracy of a Ruby window.

use super::Reading;
use weir_units::{CEILING, LATEST};

/// The most parts that a window may have.
pub const MAX_BUCKETS: u64 = 3600;

/// The most parts whose states Redis reads and writes whole.
const MOST_WHOLE: u64 = 361;

/// The engine's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    width: u64,
    window: u64,
    parts: u32,
    strict: bool,
    /// Time for which a state is kept after its last charge, at least; 0: until it is fresh.
    expire: u64,
}

/// Stored state: the parts that were hit, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    slots: Slots,
    hit: Vec<Hit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hit {
    part: u64,
    hits: u64,
}

impl Slots {
    /// Parts of `width` microseconds of each `window`; `None` unless there are 1 to [`MAX_BUCKETS`].
    pub const fn new(width: u64, window: u64, strict: bool) -> Option<Self> {
        if width == 0 || width > window {
            return None;
        }
        let parts = window.div_ceil(width);
        if parts > MAX_BUCKETS {
            return None;
        }
        Some(Self { width, window, parts: parts as u32, strict, expire: 0 })
    }

    /// Keeps states for `expire` after their last charge, if that is the window or more.
    pub(super) const fn expiring(self, expire: u64) -> Option<Self> {
        if expire < self.window { None } else { Some(Self { expire, ..self }) }
    }

    /// Returns the time for which a state is kept after its last charge, at least, in microseconds; `None`: until it is fresh.
    pub const fn expire(&self) -> Option<u64> {
        if self.expire == 0 { None } else { Some(self.expire) }
    }

    /// Returns the time for which a state is kept after it is fresh, so that all charges of a part have one expiry: its
    /// newest part counts for a window from its start, or, strict, from its end, which is no earlier than the last charge.
    pub const fn stays(&self) -> u64 {
        let to_end = if self.strict { 0 } else { self.width };
        if self.expire == 0 { 0 } else { self.expire - self.window + to_end }
    }

    /// True if both have the same parts, so that a state of one is one of the other.
    const fn has_parts_of(&self, other: &Self) -> bool {
        self.width == other.width && self.window == other.window && self.strict == other.strict
    }

    /// Length of a part, in microseconds. The last one of a window may be shorter.
    pub const fn width(&self) -> u64 {
        self.width
    }

    /// The window, in microseconds.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Parts of a window.
    pub const fn parts(&self) -> u64 {
        self.parts as u64
    }

    /// Parts that count, including the current one.
    pub const fn count(&self) -> u64 {
        self.parts() + self.strict as u64
    }

    /// True if one part more counts than the window has.
    pub const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Window and strictness in one number: twice the window, and 1 if it is strict.
    pub const fn frame(&self) -> u64 {
        2 * self.window + self.strict as u64
    }

    /// The longest time for which a hit counts.
    pub const fn longest(&self) -> u64 {
        self.window + if self.strict { self.width } else { 0 }
    }

    /// The part at a time.
    pub const fn part(&self, at: u64) -> u64 {
        at / self.window * self.parts() + at % self.window / self.width
    }

    /// The time at which a part begins.
    pub const fn start(&self, part: u64) -> u64 {
        part / self.parts() * self.window + part % self.parts() * self.width
    }

    /// The time from which a part no longer counts.
    pub const fn end(&self, part: u64) -> u64 {
        self.start(part + self.count())
    }

    /// The parts as of now. `origin` is the start of the newest, `span` how long it counts, `extra` the current part, and
    /// `shift` is in parts.
    pub(super) fn read(&self, state: Option<&State>, now: u64) -> Reading {
        let Some((state, newest)) = state.and_then(|state| Some((state, state.hit.last()?.part))) else {
            return self.opening(now);
        };
        let own = &state.slots;
        let is_ahead = own.start(newest).saturating_sub(now) > own.end(newest) - own.start(newest);
        let shift = if is_ahead { newest - own.part(now) } else { 0 };
        let newest = newest - shift;
        let (origin, end) = (own.start(newest), own.end(newest));
        let at = now.max(origin);
        if at >= end {
            return self.opening(at);
        }
        let mut reading = Reading { level: 0, at, origin, extra: own.part(at), shift, span: end - origin };
        let counts = |hit: &&Hit| !own.has_parts_of(self) || self.is_live(hit, &reading);
        reading.level = state.hit.iter().filter(counts).map(|hit| hit.hits).sum();
        reading
    }

    /// Microseconds until `excess` units have left: part by part, or all at once where they are another's.
    pub(super) fn wait(&self, state: Option<&State>, reading: &Reading, excess: u64) -> u64 {
        let last = reading.span - (reading.at - reading.origin);
        let is_own = |state: &&State| state.slots.has_parts_of(self) && excess < reading.level;
        let Some(state) = state.filter(is_own) else {
            return last;
        };
        let mut freed = 0;
        let mut live = state.hit.iter().filter(|hit| self.is_live(hit, reading));
        let frees_enough = |hit: &&Hit| {
            freed += hit.hits;
            freed >= excess
        };
        live.find(frees_enough).map_or(last, |hit| self.end(hit.moved(reading)) - reading.at)
    }

    /// Sets the level: a charge goes into the current part, a refund out of the newest.
    pub(super) fn write(&self, state: &mut State, reading: &mut Reading, level: u64) {
        if !state.slots.has_parts_of(self) {
            let part = state.slots.part(reading.origin);
            state.hit.clear();
            state.hit.push(Hit { part, hits: level });
            return;
        }
        state.hit.retain(|hit| self.is_live(hit, reading));
        for hit in &mut state.hit {
            hit.part = hit.moved(reading);
        }
        if level > reading.level {
            let (part, hits) = (self.part(reading.at), level - reading.level);
            match state.hit.last_mut() {
                Some(newest) if newest.part == part => newest.hits += hits,
                _ => state.hit.push(Hit { part, hits }),
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
        reading.shift = 0;
        if let Some(newest) = state.hit.last() {
            reading.origin = self.start(newest.part);
            reading.span = self.end(newest.part) - reading.origin;
        }
    }

    /// Cost charged in the newest `parts` parts, including the current one.
    pub(super) fn newest(&self, state: Option<&State>, reading: &Reading, parts: u64) -> u64 {
        let Some(state) = state else { return 0 };
        let oldest = (self.part(reading.at) + 1).saturating_sub(parts.clamp(1, self.count()));
        if !state.slots.has_parts_of(self) {
            return if reading.origin >= self.start(oldest) { reading.level } else { 0 };
        }
        let counts = |hit: &&Hit| self.is_live(hit, reading) && hit.moved(reading) >= oldest;
        state.hit.iter().filter(counts).map(|hit| hit.hits).sum()
    }

    /// True if there are so many parts that Redis keeps them in the other layout.
    pub(super) const fn is_many(&self) -> bool {
        self.count() > MOST_WHOLE
    }

    pub(super) const fn empty(self) -> State {
        State { slots: self, hit: Vec::new() }
    }

    fn opening(&self, at: u64) -> Reading {
        Reading { extra: self.part(at), ..Reading::fresh(at, at) }
    }

    /// True if a hit of these parts still counts.
    const fn is_live(&self, hit: &Hit, reading: &Reading) -> bool {
        hit.moved(reading) + self.count() > reading.extra
    }
}

impl State {
    /// Parts that were hit: numbers and hits, oldest first, of which all but the newest hold `rest`.
    pub(super) fn from_hits(slots: Slots, hit: Vec<(u64, u64)>, rest: u64) -> Option<Self> {
        let (newest, older) = hit.split_last()?;
        let held = older.iter().try_fold(0, |held: u64, (_, hits)| held.checked_add(*hits));
        let fine = held == Some(rest)
            && hit.is_sorted_by_key(|(part, _)| *part)
            && newest.0 / slots.parts() <= LATEST.0 / slots.window
            && rest.checked_add(newest.1).is_some_and(|level| level <= CEILING);
        let hit = hit.into_iter().map(|(part, hits)| Hit { part, hits }).collect();
        fine.then_some(Self { slots, hit })
    }

    /// The parameters that it was written under.
    pub(super) const fn parameters(&self) -> &Slots {
        &self.slots
    }

    /// Iterates over the parts with their hits, oldest first.
    pub(super) fn hits(&self) -> impl Iterator<Item = (u64, u64)> {
        self.hit.iter().map(|hit| (hit.part, hit.hits))
    }

    /// Returns the time at which the newest part began.
    pub(super) fn begins(&self) -> Option<u64> {
        self.hit.last().map(|newest| self.slots.start(newest.part))
    }

    /// Bytes by which a charge at `now` may make the parts grow: none where it joins the newest, or where the oldest
    /// no longer counts.
    pub(super) fn growth(&self, slots: &Slots, now: u64) -> usize {
        let is_full = self.hit.len() == self.hit.capacity();
        let current = slots.part(now);
        let joins = self.hit.last().is_some_and(|newest| current <= newest.part);
        let frees = self.hit.first().is_some_and(|oldest| oldest.part + slots.count() <= current);
        if is_full && !joins && !frees { self.heap_bytes() } else { 0 }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.hit.capacity() * size_of::<Hit>()
    }
}

impl Hit {
    /// The part, moved back with a clock that went back far.
    const fn moved(&self, reading: &Reading) -> u64 {
        self.part.saturating_sub(reading.shift)
    }
}
