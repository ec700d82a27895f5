//! Sliding log: every charge is kept with its time and counts for exactly one span.
//!
//! The entries are (time, running total), oldest first; `base` is the running total before the
//! oldest. What counts between two entries is a difference of totals, so any cost is one entry, the
//! level is found without summing, and the entry that frees enough by binary search:
//!
//! ```text
//!   base   t1 total   t2 total   t3 total   …      level = last total − total before the first live entry
//!          └ live: t > now − span ──────────┘      freed by entry k = its total − that base
//! ```
//!
//! Totals are counted modulo 2^52, which is exact because the level stays below it. The log is
//! judged without trimming: only a charge drops the entries that no longer count. Charges in the
//! same microsecond share an entry. Twin: `lua/log.lua`.
//!
//! With `min_gap` a charge must also come so long after the one before it. Where denied attempts are
//! charged too (logins), only the newest `keep` units can still matter: older ones are dropped, so that
//! an attack takes no more memory than the limit.
//!
//! Promise: never more than `limit` in any half-open span. Memory: one entry per charge.
//! Source: the sorted-set recipe for Redis, with its faults mended (members that collide, scores in
//! whole seconds, `==` for `>=`, keys without expiry).

mod held;
mod numbers;

use std::collections::VecDeque;

pub(super) use self::held::FORGET;
pub use self::held::{DEFAULT_MAX_HELD, MOST_MAX_HELD};

use self::held::HeldStart;
use super::Reading;
use weir_units::LATEST;

/// The most entries that one log keeps. Limits are capped at it; a forced debit beyond it joins the
/// newest entry.
pub const MAX_ENTRIES: u64 = 10_000;

/// The most that may count at once: one less than the modulus of the running totals.
pub(super) const CEILING: u64 = MODULUS - 1;

const MODULUS: u64 = weir_units::CEILING;

/// The engine's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    /// Time for which an entry counts, in microseconds.
    pub span: u64,
    /// The shortest time between two charges, in microseconds; never above the span.
    pub min_gap: u64,
    /// Number of the newest units that are kept: one above the limit where denied attempts are charged, and all, where not.
    pub keep: u64,
    /// Most reservations held beside the log at a time; 0 if it accepts none.
    pub max_held: u64,
}

/// Stored state of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    base: u64,
    entries: VecDeque<LogEntry>,
    /// Boxed, because few logs have any.
    #[allow(clippy::box_collection)] // a deque takes four words of every log
    held: Option<Box<VecDeque<HeldStart>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogEntry {
    at: u64,
    total: u64,
}

impl Log {
    /// The log as of now. `origin` is the newest entry's time, `extra` the number of entries that no longer count. A
    /// log whose newest entry is further ahead than a span is read as if moved back to now (`shift`), each entry
    /// keeping its distance to the others.
    pub(super) fn read(&self, state: Option<&State>, now: u64) -> Reading {
        let Some((state, newest)) = state.and_then(|state| Some((state, state.entries.back()?))) else {
            let fresh = Reading::fresh(now, now);
            return match state {
                Some(state) if self.holds() => self.read_held(state, fresh),
                _ => fresh,
            };
        };
        let ahead = newest.at.saturating_sub(now);
        let shift = if ahead > self.span { ahead } else { 0 };
        let at = now.max(newest.at - shift);
        let dead = state.entries.partition_point(|entry| entry.at - shift.min(entry.at) + self.span <= at);
        let level = total_between(state.total_before(dead), newest.total);
        let reading = Reading { level, at, origin: newest.at - shift, extra: dead as u64, shift, span: 0 };
        if self.holds() { self.read_held(state, reading) } else { reading }
    }

    /// Microseconds until `excess` units have left. An excess above the level is that of an attempt
    /// yet to be recorded, now.
    pub(super) fn wait(&self, state: Option<&State>, reading: &Reading, excess: u64) -> u64 {
        if excess > reading.level {
            return self.span;
        }
        let leaves = match state {
            Some(state) if excess < reading.level => state.freeing(reading.extra as usize, excess),
            _ => None,
        };
        let freed_at = leaves.map_or(reading.origin, |at| at.saturating_sub(reading.shift));
        (freed_at + self.span).saturating_sub(reading.at)
    }

    /// Drops expired entries and records the charge that raises the level to `level`, or takes a refund out of the
    /// newest entries.
    pub(super) fn write(&self, state: &mut State, reading: &mut Reading, level: u64) {
        state.move_back(reading.shift);
        let cost = level.saturating_sub(reading.level);
        state.drop_first(reading.extra as usize);
        state.drop_first(state.beyond(self.keep.saturating_sub(cost)));
        state.push(reading.at, cost);
        state.pull(reading.level.saturating_sub(level));
        reading.origin = state.newest().unwrap_or(reading.at);
        state.shrink();
    }
}

impl State {
    /// A log of two entries, times and running totals, which says the same as one with others between them, as
    /// long as what is asked is what the first or all of it frees; of one, where both are the same.
    pub(super) fn of_two(base: u64, first: (u64, u64), newest: (u64, u64)) -> Option<Self> {
        let fine = base.max(first.1).max(newest.1) < MODULUS && first.0 <= newest.0 && newest.0 <= LATEST.0;
        let entry = |(at, total)| LogEntry { at, total };
        let entries = if first == newest { vec![entry(first)] } else { vec![entry(first), entry(newest)] };
        fine.then_some(Self { base, entries: entries.into(), held: None })
    }

    fn held(&self) -> &VecDeque<HeldStart> {
        self.held.as_deref().unwrap_or(&held::NONE)
    }

    fn held_mut(&mut self) -> &mut VecDeque<HeldStart> {
        self.held.get_or_insert_default()
    }

    pub(super) fn newest(&self) -> Option<u64> {
        self.entries.back().map(|newest| newest.at)
    }

    /// Returns the time at which the newest entry was made, or the last call starts. Entries may be read as moved back to
    /// now, a start to a window after the newest entry, and the state then lasts for a window more.
    pub(super) fn begins(&self) -> Option<(u64, u64)> {
        match self.held().back() {
            Some(last) => Some((last.start(), 3)),
            None => self.newest().map(|at| (at, 1)),
        }
    }

    pub(super) fn costs(&self, first: usize) -> impl Iterator<Item = (u64, u64)> + Clone {
        let mut before = self.total_before(first);
        self.entries.iter().skip(first).map(move |entry| {
            let cost = total_between(before, entry.total);
            before = entry.total;
            (entry.at, cost)
        })
    }

    pub(super) fn move_back(&mut self, shift: u64) {
        if shift > 0 {
            for entry in &mut self.entries {
                entry.at = entry.at.saturating_sub(shift);
            }
        }
    }

    /// Frees unused memory.
    pub(super) fn shrink(&mut self) {
        if self.entries.capacity() > 4 * self.entries.len().max(16) {
            self.entries.shrink_to(2 * self.entries.len());
        }
        if self.held.as_ref().is_some_and(|held| held.is_empty()) {
            self.held = None;
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let held = self.held.as_ref();
        let held = held.map_or(0, |held| size_of_val(&**held) + held.capacity() * size_of::<HeldStart>());
        self.entries.capacity() * size_of::<LogEntry>() + held
    }

    /// Bytes by which a charge at `now` may make the entries grow: none where it joins the newest, or where the
    /// oldest no longer counts.
    pub(super) fn growth(&self, log: &Log, now: u64) -> usize {
        let is_full = self.entries.len() == self.entries.capacity();
        let joins = self.entries.back().is_some_and(|newest| newest.at >= now);
        let frees = self.entries.front().is_some_and(|oldest| oldest.at.saturating_add(log.span) <= now);
        let held = if log.holds() { 64 + self.held().len() * size_of::<HeldStart>() } else { 0 };
        held + if is_full && !joins && !frees { self.entries.capacity() * size_of::<LogEntry>() } else { 0 }
    }

    fn total_before(&self, index: usize) -> u64 {
        index
            .checked_sub(1)
            .and_then(|before| self.entries.get(before))
            .map_or(self.base, |entry| entry.total)
    }

    /// Forgets the oldest `count` entries.
    pub(super) fn drop_first(&mut self, count: usize) {
        self.base = self.total_before(count);
        self.entries.drain(..count);
    }

    /// Number of the oldest entries that have `keep` units or more after them.
    fn beyond(&self, keep: u64) -> usize {
        let Some(newest) = self.entries.back().filter(|_| keep < MODULUS) else { return 0 };
        self.entries.partition_point(|entry| total_between(entry.total, newest.total) >= keep)
    }

    /// Returns the time at which the first entry expires that, with those before it, frees `excess`.
    fn freeing(&self, first_live: usize, excess: u64) -> Option<u64> {
        let base = self.total_before(first_live);
        let freed = |entry: &LogEntry| total_between(base, entry.total);
        let live = self.entries.len().saturating_sub(first_live);
        let short = |k: usize| self.entries.get(first_live + k).is_some_and(|entry| freed(entry) < excess);
        self.entries.get(first_live + partition(live, short)).map(|entry| entry.at)
    }

    pub(super) fn push(&mut self, at: u64, cost: u64) {
        if cost == 0 {
            return;
        }
        let full = self.entries.len() as u64 >= MAX_ENTRIES;
        let total = |before: u64| (before + cost) % MODULUS;
        match self.entries.back_mut() {
            Some(newest) if newest.at == at || full => *newest = LogEntry { at, total: total(newest.total) },
            Some(newest) => {
                let total = total(newest.total);
                self.entries.push_back(LogEntry { at, total });
            }
            None => self.entries.push_back(LogEntry { at, total: total(self.base) }),
        }
    }

    /// Takes `cost` out of the newest entries.
    pub(super) fn pull(&mut self, mut cost: u64) {
        while let Some(newest) = self.entries.back().copied().filter(|_| cost > 0) {
            let held = total_between(self.total_before(self.entries.len() - 1), newest.total);
            self.entries.pop_back();
            if held > cost {
                let total = (newest.total + MODULUS - cost) % MODULUS;
                self.entries.push_back(LogEntry { total, ..newest });
            }
            cost = cost.saturating_sub(held);
        }
    }
}

/// The difference of two running totals.
fn total_between(before: u64, after: u64) -> u64 {
    if after >= before { after - before } else { after + MODULUS - before }
}

/// The first index below `len` for which `below` no longer holds.
fn partition(len: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
