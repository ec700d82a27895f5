//! Sliding window of two counters: the window before counts by the part of it that is still in view.
//!
//! Windows start at whole multiples of the span since the epoch. Twin: `lua/sliding.lua`.
//!
//! ```text
//!   e = now mod span        admitted ⇔ previous · (span − e) + (current + cost) · span ≤ limit · span
//!                           level = current + ⌈previous · (span − e) / span⌉
//! ```
//!
//! Products are 128 bits wide, so a limit of 10^9 a month is exact to the microsecond.
//!
//! Promise: less than twice the limit in any span (all of it at the end of one window, then as it comes
//! back), at most the limit in a window; an even pace of one fewer than the limit is never denied.
//! A state that was written under another span counts whole, and takes what is charged meanwhile, until
//! it would have been fresh under its own.
//! Sources: Cloudflare's two counters; those of Kong and upstash, without their rounding.

use super::Reading;

/// The most that a window may hold: a state of two of them still counts exactly.
pub(super) const CEILING: u64 = weir_units::CEILING / 2;

/// The engine's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sliding {
    /// Length of a window, in microseconds.
    pub span: u64,
}

/// Stored state of two windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Time at which the newer window started.
    pub start: u64,
    /// Cost charged in it.
    pub current: u64,
    /// Cost charged in the one before.
    pub previous: u64,
    /// The windows' own length.
    pub span: u64,
}

impl Sliding {
    /// The windows as of now. `origin` is the start of the current window, `extra` the cost in the one before, `span`
    /// the length of both.
    pub(super) fn read(&self, state: Option<&State>, now: u64) -> Reading {
        let Some(&State { mut start, mut current, mut previous, span }) = state else {
            return self.opening(now);
        };
        let lasts = if current > 0 { 2 * span } else { span };
        let (mut at, mut shift) = (now, 0);
        if start > now {
            if start - now > lasts {
                let moved = now - now % span.max(1);
                shift = start - moved;
                start = moved;
            } else {
                at = start;
            }
        }
        if at - start >= lasts {
            return self.opening(at);
        }
        if span != self.span {
            let origin = if current > 0 { start } else { start.saturating_sub(span) };
            // It is written back as a single window.
            let level = (current + previous).min(CEILING);
            return Reading { level, at, origin, extra: 0, shift, span };
        }
        if at - start >= span {
            (previous, current, start) = (current, 0, start + span);
        }
        let level = current + self.weighted(previous, at - start);
        Reading { level, at, origin: start, extra: previous, shift, span }
    }

    /// Microseconds until `excess` units have gone: within this window, else within the next.
    pub(super) fn wait(&self, reading: &Reading, excess: u64) -> u64 {
        let elapsed = reading.at - reading.origin;
        if reading.span != self.span {
            return (2 * reading.span).saturating_sub(elapsed);
        }
        let (kept, current) = (reading.level.saturating_sub(excess), self.current(reading));
        if kept >= current {
            self.span - mul_div(kept - current, self.span, reading.extra).min(self.span) - elapsed
        } else {
            2 * self.span - elapsed - mul_div(kept, self.span, current)
        }
    }

    pub(super) fn write(&self, reading: &Reading, level: u64) -> State {
        let (span, start) = (reading.span, reading.origin);
        if span != self.span {
            return State { start, current: level, previous: 0, span };
        }
        let current = level - self.weighted(reading.extra, reading.at - start).min(level);
        State { start, current, previous: reading.extra, span }
    }

    /// Takes `cost` back, from this window and then from the one before; returns the level after it.
    pub(super) fn refund(&self, reading: &mut Reading, cost: u64) -> u64 {
        if reading.span != self.span {
            return reading.level.saturating_sub(cost);
        }
        let current = self.current(reading);
        reading.extra = reading.extra.saturating_sub(cost.saturating_sub(current));
        current.saturating_sub(cost) + self.weighted(reading.extra, reading.at - reading.origin)
    }

    fn current(&self, reading: &Reading) -> u64 {
        reading.level.saturating_sub(self.weighted(reading.extra, reading.at - reading.origin))
    }

    /// The part of `previous` that still counts, rounded up.
    fn weighted(&self, previous: u64, elapsed: u64) -> u64 {
        previous - mul_div(previous, elapsed, self.span).min(previous)
    }

    /// Two windows without hits.
    fn opening(&self, at: u64) -> Reading {
        Reading { span: self.span, ..Reading::fresh(at, at - at % self.span) }
    }
}

/// ⌊a · b / c⌋; nothing of nothing.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product.checked_div(u128::from(c)).map_or(0, |quotient| quotient as u64)
}
