//! Fixed window: a counter that starts again at every window.
//!
//! Aligned windows start at whole multiples of the span since the epoch (every full minute);
//! anchored windows start at the first charged hit. Twin: `lua/window.lua`.
//!
//! ```text
//!   admitted ⇔ hits + cost ≤ limit          retry at the end of the window
//! ```
//!
//! Promise: at most `limit` in each window, so up to twice the limit in a span that straddles two.
//! A state that was written under another span counts whole until its own window ends.
//! Source: the `INCR` and `EXPIRE` recipe of the Redis documentation, with the check before the charge.

use super::Reading;

/// The engine's own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Length of a window, in microseconds.
    pub span: u64,
    /// Whether windows start at the first hit rather than at multiples of the span.
    pub anchored: bool,
}

/// What is stored of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// When the window started.
    pub start: u64,
    /// What was charged in it.
    pub hits: u64,
    /// The window's own length: a changed configuration lets it end as it began.
    pub span: u64,
}

impl Window {
    /// The hits that count now. `origin` is the start of the window in force, `extra` its length.
    pub(super) fn read(&self, state: Option<&State>, now: u64) -> Reading {
        let Some(&State { mut start, hits, span }) = state else { return self.opening(now) };
        let mut at = now;
        let mut shift = 0;
        if start > now {
            if start - now > span {
                let moved = if self.anchored { now } else { now - now % span.max(1) };
                shift = start - moved;
                start = moved;
            } else {
                at = start;
            }
        }
        if at >= start + span {
            return self.opening(at);
        }
        Reading { level: hits, at, origin: start, extra: span, shift, span: 0 }
    }

    /// Microseconds until the window in force ends: whatever is in excess leaves then, all at once.
    pub(super) fn wait(reading: &Reading) -> u64 {
        reading.origin + reading.extra - reading.at
    }

    /// What to store after the hits became `level`.
    pub(super) fn write(reading: &Reading, level: u64) -> State {
        State { start: reading.origin, hits: level, span: reading.extra }
    }

    /// A window without hits.
    fn opening(&self, at: u64) -> Reading {
        let start = if self.anchored { at } else { at - at % self.span };
        Reading { level: 0, at, origin: start, extra: self.span, shift: 0, span: 0 }
    }
}
