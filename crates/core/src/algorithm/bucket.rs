//! Token bucket, leaky bucket as a meter, GCRA and the uniform gate: one engine.
//!
//! The state is how full the bucket is (`level`) and when that was true (`at`). One token is
//! `per_token` ticks; `drain` ticks leave per microsecond. With `rate` tokens per `period`
//! microseconds and `g = gcd(rate, period)` that is `per_token = period / g` and `drain = rate / g`,
//! so that 3 per second is exactly 3 in every full second.
//!
//! ```text
//!   level now = max(0, level − (now − at) · drain)
//!   admitted  ⇔ level + cost · per_token ≤ burst · per_token
//! ```
//!
//! The same numbers under other names: tokens left = burst − level / per_token; GCRA's theoretical
//! arrival time = at + level / drain, its tolerance = burst · per_token / drain. A uniform gate is a
//! bucket of one token. Twin: `lua/bucket.lua`.
//!
//! Promise: in any interval of length t at most `burst + t · rate / period` is admitted. Where calls pay
//! afterwards (`charge_after`: only the backlog must fit, `level ≤ burst · per_token`), and the largest cost more.
//!
//! A queue (nginx `limit_req`) admits as a bucket of `burst + 1` does, and says how long each call must wait for its
//! turn: `max(0, ⌈(level before − undelayed) / drain⌉)`.
//! Sources: ITU-T I.371 (GCRA as virtual scheduling and as continuous-state leaky bucket);
//! ALGORITHMS of redis-cell, bucket4j and nginx agree on the vectors in `tests/vectors/bucket.json`.

use super::Reading;
use weir_units::CEILING;

/// The engine's own numbers: how fast the bucket empties, and how many ticks a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Ticks that leave per microsecond.
    pub drain: u64,
    /// Ticks per token.
    pub per_token: u64,
    /// Level of a queue, in ticks, up to which calls go ahead at once; above it each waits for its turn.
    pub undelayed: Option<u64>,
}

/// Stored state of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Ticks in the bucket at `at`.
    pub level: u64,
    /// Time at which `level` was true.
    pub at: u64,
    /// Ticks per token when this was written: a changed rate is rescaled when read.
    pub per_token: u64,
}

impl Bucket {
    /// The level now. A clock that stepped back a little stands still until it has caught up; a
    /// state further ahead than it needs to empty itself is moved back to now.
    pub(super) fn read(&self, state: Option<&State>, now: u64) -> Reading {
        let Some(state) = state else { return Reading::fresh(now, now) };
        let mut level = state.level;
        if state.per_token != self.per_token {
            level = rescale(level, self.per_token, state.per_token);
        }
        if state.at > now {
            let ahead = state.at - now;
            if ahead > self.wait(level) {
                return Reading { level, at: now, origin: now, extra: 0, shift: ahead, span: 0 };
            }
            return Reading { level, at: state.at, origin: state.at, extra: 0, shift: 0, span: 0 };
        }
        let drained = (now - state.at).saturating_mul(self.drain);
        Reading { level: level.saturating_sub(drained), at: now, origin: now, extra: 0, shift: 0, span: 0 }
    }

    /// Microseconds until `excess` ticks have left, rounded up.
    pub(super) fn wait(&self, excess: u64) -> u64 {
        excess.div_ceil(self.drain)
    }

    pub(super) fn write(&self, reading: &Reading, level: u64) -> State {
        State { level, at: reading.at, per_token: self.per_token }
    }
}

/// ⌈level · new / old⌉, saturating at the ceiling: the same share of tokens in other ticks.
fn rescale(level: u64, new: u64, old: u64) -> u64 {
    let scaled = (u128::from(level) * u128::from(new)).div_ceil(u128::from(old.max(1)));
    u64::try_from(scaled).unwrap_or(CEILING).min(CEILING)
}
