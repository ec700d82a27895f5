//! Held log: reservations of a sliding log, which are entered at their starts.
//!
//! A reservation starts at the earliest time at which its window has room, and not before any other reserved start. As
//! long as a start lies ahead, plain calls are denied, so that none overtakes it. Starts are kept beside the log,
//! which stays as it is without them; those that are due enter it with the next write, and until then they are counted.
//! Twin: `lua/held.lua`.
//!
//! ```text
//!   log   t1 total  t2 total …  │ now │  starts ahead: (start, cost, number) …
//!   start = the first time s ≥ max(now, last start) with  Σ of (s − span, s] + cost ≤ limit
//! ```
//!
//! A reading's level counts the starts that are due, its origin is the newest entry or due start, and its `span` how far
//! the starts are moved back: where the last of them is more than a window ahead, the clock has stepped back.
//!
//! At most `max_held` starts lie ahead at a time, because each call reads all of them. A reservation beyond that is refused
//! until the first of them is due.
//!
//! Promise: the starts and the plain calls are never more than `limit` in any half-open span, where nothing is refunded.

use std::collections::VecDeque;

use super::{Log, State};
use crate::algorithm::{Algorithm, Engine, Reading};

/// Origin of a reading whose state is to be dropped, with all reservations.
pub(in crate::algorithm) const FORGET: u64 = u64::MAX;

/// A call that starts later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldStart {
    pub(super) start: u64,
    pub(super) cost: u64,
    /// Number by which a cancellation names it.
    pub(super) number: u64,
}

impl HeldStart {
    pub(super) const fn start(&self) -> u64 {
        self.start
    }
}

impl Algorithm {
    /// The log's parameters, if it accepts reservations.
    pub(in crate::algorithm) const fn holds(&self) -> Option<&Log> {
        match &self.engine {
            Engine::Log(log) if !self.is_plain && log.holds() => Some(log),
            _ => None,
        }
    }
}

/// Default of the most reservations that a log may hold.
pub const DEFAULT_MAX_HELD: u64 = 100;

/// Upper bound of `max_held`.
pub const MOST_MAX_HELD: u64 = 1000;

impl Log {
    /// True if it accepts reservations.
    pub const fn holds(&self) -> bool {
        self.max_held > 0
    }

    /// Adds the starts held beside the log to its reading.
    pub(super) fn read_held(&self, state: &State, mut reading: Reading) -> Reading {
        let Some(last) = state.held().back() else { return reading };
        reading.span = last.start.saturating_sub(reading.at + self.span);
        if state.newest().is_none() {
            reading.origin = 0;
        }
        for held in state.held() {
            let start = held.start - reading.span.min(held.start);
            if start <= reading.at && start + self.span > reading.at {
                reading.level += held.cost;
                reading.origin = reading.origin.max(start);
            }
        }
        reading
    }

    /// The earliest time at which a call of `cost`, at most the limit, may start.
    pub(in crate::algorithm) fn start_of(
        &self,
        limit: u64,
        state: Option<&State>,
        reading: &Reading,
        cost: u64,
    ) -> u64 {
        let Some(state) = state else { return reading.at };
        let first = last_start(state, reading).map_or(reading.at, |last| last.max(reading.at));
        let live = entries(state, reading).filter(|(at, _)| at + self.span > first);
        let level: u64 = live.clone().map(|(_, cost)| cost).sum();
        let excess = (level + cost).saturating_sub(limit);
        if excess == 0 {
            return first;
        }
        let mut freed = 0;
        let mut frees = live.filter(|(_, cost)| {
            freed += cost;
            freed >= excess
        });
        frees.next().map_or(first, |(at, _)| at + self.span)
    }

    /// Time until the first start that lies ahead is due, if no more may be held. A state of the release before may hold
    /// more than `max_held`.
    pub(in crate::algorithm) fn full_for(&self, state: Option<&State>, reading: &Reading) -> Option<u64> {
        let held = state?.held();
        let start = |held: &HeldStart| held.start.saturating_sub(reading.span);
        let due = held.partition_point(|held| start(held) <= reading.at);
        let first = held.get(due).filter(|_| (held.len() - due) as u64 >= self.max_held)?;
        Some(start(first) - reading.at)
    }

    /// True if a start lies ahead.
    pub(in crate::algorithm) fn is_held(state: Option<&State>, reading: &Reading) -> bool {
        let last = state.and_then(|state| last_start(state, reading));
        last.is_some_and(|last| last > reading.at)
    }

    /// Time until neither the log nor a start counts.
    pub(in crate::algorithm) fn held_reset(&self, state: Option<&State>, reading: &Reading) -> u64 {
        let ahead = state.and_then(|state| last_start(state, reading)).filter(|last| *last > reading.at);
        match ahead {
            Some(last) => last + self.span - reading.at,
            None if reading.level == 0 => 0,
            None => (reading.origin + self.span).saturating_sub(reading.at),
        }
    }

    /// Enters due starts into the log, and then the charge that raises the level to `level`: now, or as a start if
    /// the reading's origin lies ahead. Returns false if nothing is left.
    pub(in crate::algorithm) fn write_held(
        &self,
        state: &mut State,
        reading: &mut Reading,
        level: u64,
    ) -> bool {
        if reading.origin == FORGET {
            return false;
        }
        let (start, added) = (reading.origin, level.saturating_sub(reading.level));
        state.move_back(reading.shift);
        for held in state.held_mut() {
            held.start -= reading.span.min(held.start);
        }
        state.drop_first(reading.extra as usize);
        while let Some(due) = state.held().front().copied().filter(|held| held.start <= reading.at) {
            state.held_mut().pop_front();
            if due.start + self.span > reading.at {
                state.push(due.start, due.cost);
            }
        }
        if start > reading.at && added > 0 {
            let number = next_number(state, reading);
            state.held_mut().push_back(HeldStart { start, cost: added, number });
        } else {
            state.push(reading.at, added);
        }
        state.pull(reading.level.saturating_sub(level));
        (reading.shift, reading.span, reading.extra) = (0, 0, 0);
        reading.origin = state.newest().unwrap_or(reading.at);
        state.shrink();
        state.newest().is_some() || !state.held().is_empty()
    }

    /// The number by which the newest held reservation can be cancelled.
    pub(in crate::algorithm) fn held_number(state: Option<&State>) -> u64 {
        state.and_then(|state| state.held().back()).map_or(0, |held| held.number)
    }

    /// Removes a reservation; the later ones do not move.
    pub(in crate::algorithm) fn release(state: &mut State, number: u64, cost: u64) {
        state.held_mut().retain(|held| (held.number, held.cost) != (number, cost));
    }
}

fn last_start(state: &State, reading: &Reading) -> Option<u64> {
    state.held().back().map(|last| last.start - reading.span.min(last.start))
}

/// A number unlike that of every other held start; no clock is ever at 0.
fn next_number(state: &State, reading: &Reading) -> u64 {
    state.held().back().map_or(reading.at, |last| reading.at.max(last.number + 1)).max(1)
}

/// Times and costs of the log's entries and of the starts, oldest first.
fn entries<'s>(state: &'s State, reading: &Reading) -> impl Iterator<Item = (u64, u64)> + Clone + 's {
    let (shift, moved) = (reading.shift, reading.span);
    let log = state.costs(reading.extra as usize).map(move |(at, cost)| (at.saturating_sub(shift), cost));
    log.chain(state.held().iter().map(move |held| (held.start.saturating_sub(moved), held.cost)))
}

pub(super) static NONE: VecDeque<HeldStart> = VecDeque::new();
