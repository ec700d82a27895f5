//! Fixed window: a counter that starts again at every window.
//!
//! Aligned windows start at whole multiples of the span since the epoch (every full minute), or so much
//! ahead of them (every midnight of another offset); anchored windows start at the first charged hit;
//! months start where the civil calendar says. Twin: `lua/window.lua`.
//!
//! ```text
//!   admitted ⇔ hits + cost ≤ limit          retry at the end of the window
//! ```
//!
//! Promise: at most `limit` in each window, so up to twice the limit in a span that straddles two.
//! A state that was written under another span counts whole until its own window ends.
//! Source: the `INCR` and `EXPIRE` recipe of the Redis documentation, with the check before the charge.

use super::Reading;

/// A day, in microseconds.
pub(super) const DAY: u64 = 86_400_000_000;

/// The engine's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Length of a window, in microseconds; of a month, the longest.
    pub span: u64,
    /// Grid of the starts of windows.
    pub grid: Grid,
}

/// Grid of the starts of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grid {
    /// So much ahead of the multiples of the span; less than it.
    Aligned {
        /// In microseconds.
        ahead: u64,
    },
    /// Ahead of the multiples of the span by a phase of each key's own, so that not all keys are given
    /// their limit back at once and answer with a stampede.
    Spread,
    /// At the first hit.
    Anchored,
    /// On the first of a month.
    Month {
        /// Distance of local time from a day behind UTC, in microseconds: never negative.
        ahead: u64,
    },
}

/// Stored state of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Time at which the window started.
    pub start: u64,
    /// Cost charged in it.
    pub hits: u64,
    /// The window's own length: a changed configuration lets it end as it began.
    pub span: u64,
}

impl Window {
    /// The hits that count now. `origin` is the start of the window in force, `extra` its length.
    pub(super) fn read(&self, state: Option<&State>, now: u64, phase: u64) -> Reading {
        let Some(&State { mut start, hits, span }) = state else { return self.opening(now, phase) };
        let mut at = now;
        let mut shift = 0;
        if start > now {
            if start - now > span {
                let moved = match self.grid {
                    Grid::Aligned { ahead } => aligned(now, span.max(1), ahead),
                    Grid::Spread => aligned(now, span.max(1), phase),
                    Grid::Anchored | Grid::Month { .. } => now,
                };
                shift = start - moved;
                start = moved;
            } else {
                at = start;
            }
        }
        if at >= start + span {
            return self.opening(at, phase);
        }
        Reading { level: hits, at, origin: start, extra: span, shift, span: 0 }
    }

    /// Microseconds until the window in force ends: whatever is in excess leaves then, all at once.
    pub(super) fn wait(reading: &Reading) -> u64 {
        reading.origin + reading.extra - reading.at
    }

    pub(super) fn write(reading: &Reading, level: u64) -> State {
        State { start: reading.origin, hits: level, span: reading.extra }
    }

    /// Length of the month that contains `at`.
    pub(super) fn month(at: u64, ahead: u64) -> u64 {
        month(at, ahead).1
    }

    fn opening(&self, at: u64, phase: u64) -> Reading {
        let (origin, extra) = match self.grid {
            Grid::Aligned { ahead } => (aligned(at, self.span, ahead), self.span),
            Grid::Spread => (aligned(at, self.span, phase), self.span),
            Grid::Anchored => (at, self.span),
            Grid::Month { ahead } => month(at, ahead),
        };
        Reading { level: 0, at, origin, extra, shift: 0, span: 0 }
    }
}

/// The start of the window of `span` that contains `at`. The sum is of remainders, so that it stays exact.
const fn aligned(at: u64, span: u64, ahead: u64) -> u64 {
    at.saturating_sub((at % span + ahead % span) % span)
}

/// Start and length of the month that contains `at`. There is no time before 1970.
fn month(at: u64, ahead: u64) -> (u64, u64) {
    let day = ((at + ahead) / DAY).saturating_sub(1);
    let first = day - (day_of_month(day) - 1);
    // The 31st day after the first of any month is early in the next one.
    let length = 31 - (day_of_month(first + 31) - 1);
    (((first + 1) * DAY).saturating_sub(ahead).min(at), length * DAY)
}

/// The day of the month, from 1, of a day since the epoch, by counting years from the first of March, so
/// that a leap day is the last of its year (Howard Hinnant's `civil_from_days`).
const fn day_of_month(day: u64) -> u64 {
    let in_era = (day + 719_468) % 146_097;
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    in_year - (153 * month + 2) / 5 + 1
}
