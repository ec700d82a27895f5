//! How algorithms are made. A limit that exists is a limit whose arithmetic is exact.

use super::{
    Algorithm, Bucket, Engine, Grid, Interval, Log, MAX_BUCKETS, MAX_ENTRIES, Sliding, Slots, Window, log,
    sliding, window,
};
use weir_units::{CEILING, LONGEST_SPAN, Micros};

/// So many units in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Units per period.
    pub count: u64,
    /// The period.
    pub period: Micros,
}

/// A window that the calendar gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calendar {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

/// A number that no limit can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}: {bound}")]
pub struct Invalid {
    /// The field, as the configuration names it.
    pub field: &'static str,
    /// The value that was given.
    pub value: String,
    /// The bound that it breaks, as a sentence.
    pub bound: String,
}

impl Algorithm {
    /// One unit per `interval`, no burst. Field of errors: `interval`.
    pub fn uniform(interval: Micros) -> Result<Self, Invalid> {
        span("interval", interval)?;
        Self::bucket(1, Rate { count: 1, period: interval })
    }

    /// Up to `burst` units at once, coming back evenly at `rate`; also called token bucket, leaky
    /// bucket (as a meter) and GCRA. Fields of errors: `rate`, `burst`.
    ///
    /// Where `burst` times the period is too large to count exactly, the bucket drains in powers of
    /// two instead, slower than the rate by less than one tick per token, never faster.
    pub fn bucket(burst: u64, rate: Rate) -> Result<Self, Invalid> {
        span("rate", rate.period)?;
        let too_large = |bound: &str| invalid("burst", burst, bound);
        if rate.count == 0 {
            return Err(invalid("rate", "0", "a rate of 0 never refills; it must be at least 1 per period"));
        }
        if rate.count >= CEILING {
            return Err(invalid("rate", rate.count, "it must be below 2^52 per period"));
        }
        let divisor = gcd(rate.count, rate.period.0);
        let (mut drain, mut per_token) = (rate.count / divisor, rate.period.0 / divisor);
        if !fits(burst, per_token) {
            (drain, per_token) = scaled(burst, drain, per_token).ok_or_else(|| {
                too_large("burst times the time for one unit must stay below 2^52 microseconds (142 years)")
            })?;
        }
        let engine = Engine::Bucket(Bucket { drain, per_token });
        Ok(Self { limit: burst, weight: per_token, ceiling: CEILING, count_denied: false, engine })
    }

    /// At most `limit` units in each window of `window`; aligned to multiples of the window, or
    /// `anchored` at the first charge. With `count_denied`, denied attempts are charged too. Fields
    /// of errors: `limit`, `window`.
    pub fn fixed_window(
        limit: u64,
        window: Micros,
        anchored: bool,
        count_denied: bool,
    ) -> Result<Self, Invalid> {
        span("window", window)?;
        units("limit", limit)?;
        let grid = if anchored { Grid::Anchored } else { Grid::Aligned { ahead: 0 } };
        let engine = Engine::Window(Window { span: window.0, grid });
        Ok(Self { limit, weight: 1, ceiling: CEILING, count_denied, engine })
    }

    /// A [`Algorithm::fixed_window`] whose windows start at another time for each key, always the same.
    /// Fields of errors: `limit`, `window`.
    pub fn spread_window(limit: u64, window: Micros, count_denied: bool) -> Result<Self, Invalid> {
        span("window", window)?;
        units("limit", limit)?;
        let engine = Engine::Window(Window { span: window.0, grid: Grid::Spread });
        Ok(Self { limit, weight: 1, ceiling: CEILING, count_denied, engine })
    }

    /// At most `limit` units in each day or month of a place whose clocks are `offset_minutes` ahead of
    /// UTC, all year round. Fields of errors: `limit`, `offset`.
    pub fn calendar_window(
        limit: u64,
        calendar: Calendar,
        offset_minutes: i64,
        count_denied: bool,
    ) -> Result<Self, Invalid> {
        const MINUTE: u64 = 60_000_000;
        units("limit", limit)?;
        // From a day behind UTC on, no offset is negative.
        let minutes = offset_minutes.saturating_add(24 * 60);
        let ahead = u64::try_from(minutes).ok().filter(|&minutes| minutes > 0 && minutes < 48 * 60);
        let Some(ahead) = ahead.map(|minutes| minutes * MINUTE) else {
            return Err(invalid("offset", format!("{offset_minutes} minutes"), "it must be less than a day"));
        };
        let window = match calendar {
            Calendar::Day => Window { span: window::DAY, grid: Grid::Aligned { ahead: ahead % window::DAY } },
            Calendar::Month => Window { span: 31 * window::DAY, grid: Grid::Month { ahead } },
        };
        let engine = Engine::Window(window);
        Ok(Self { limit, weight: 1, ceiling: CEILING, count_denied, engine })
    }

    /// Up to `capacity` units; `refill` of them come back at once every `period`, at multiples of
    /// the period if `aligned`. Fields of errors: `capacity`, `refill`, `period`.
    pub fn interval_refill(
        capacity: u64,
        refill: u64,
        period: Micros,
        aligned: bool,
    ) -> Result<Self, Invalid> {
        span("period", period)?;
        units("capacity", capacity)?;
        if refill == 0 {
            return Err(invalid("refill", "0", "it must be at least 1, or nothing ever comes back"));
        }
        units("refill", refill)?;
        let ceiling = (CEILING / period.0).saturating_mul(refill).min(CEILING);
        if capacity > ceiling {
            let bound = "the time to refill it all must stay below 2^52 microseconds (142 years)";
            return Err(invalid("capacity", capacity, bound));
        }
        let engine = Engine::Interval(Interval { refill, period: period.0, aligned });
        Ok(Self { limit: capacity, weight: 1, ceiling, count_denied: false, engine })
    }

    /// At most `limit` units in any span of `window`, exactly. Fields of errors: `limit`, `window`.
    pub fn sliding_log(limit: u64, window: Micros) -> Result<Self, Invalid> {
        Self::strict_log(limit, window, false, Micros::ZERO)
    }

    /// A [`Algorithm::sliding_log`] whose charges are also at least `min_gap` apart. With
    /// `count_denied`, denied attempts are charged too: what protects logins. Fields of errors:
    /// `limit`, `window`, `min_gap`.
    pub fn strict_log(
        limit: u64,
        window: Micros,
        count_denied: bool,
        min_gap: Micros,
    ) -> Result<Self, Invalid> {
        span("window", window)?;
        if limit > MAX_ENTRIES {
            let bound = "a log keeps an entry per call, so its limit is at most 10000; \
                         use token_bucket or fixed_window above it";
            return Err(invalid("limit", limit, bound));
        }
        // What is kept of denied attempts is one unit more than the limit.
        if count_denied && limit == MAX_ENTRIES {
            return Err(invalid("limit", limit, "with `count_denied` it is at most 9999"));
        }
        if min_gap > window {
            return Err(invalid("min_gap", min_gap, "it must be at most the window"));
        }
        let keep = if count_denied { limit + 1 } else { u64::MAX };
        let engine = Engine::Log(Log { span: window.0, min_gap: min_gap.0, keep });
        Ok(Self { limit, weight: 1, ceiling: log::CEILING, count_denied, engine })
    }

    /// At most `limit` units in the window that slides, where the aligned window before counts by the part
    /// of it that is still in view. Fields of errors: `limit`, `window`.
    pub fn sliding_window(limit: u64, window: Micros) -> Result<Self, Invalid> {
        span("window", window)?;
        if limit >= sliding::CEILING {
            return Err(invalid("limit", limit, "it must be below 2^51"));
        }
        let engine = Engine::Sliding(Sliding { span: window.0 });
        Ok(Self { limit, weight: 1, ceiling: sliding::CEILING, count_denied: false, engine })
    }

    /// At most `limit` units in the newest `buckets` parts of the window; `strict`, one part more, so that
    /// no span of the window ever has more. Fields of errors: `limit`, `window`, `buckets`.
    pub fn bucketed_window(limit: u64, window: Micros, buckets: u64, strict: bool) -> Result<Self, Invalid> {
        span("window", window)?;
        units("limit", limit)?;
        if !(1..=MAX_BUCKETS).contains(&buckets) {
            return Err(invalid("buckets", buckets, "it must be from 1 to 360"));
        }
        if !window.0.is_multiple_of(buckets) {
            let bound =
                format!("the window of {window} must be so many times a whole number of microseconds");
            return Err(invalid("buckets", buckets, &bound));
        }
        let engine = Engine::Slots(Slots { width: window.0 / buckets, count: buckets + u64::from(strict) });
        Ok(Self { limit, weight: 1, ceiling: CEILING, count_denied: false, engine })
    }
}

fn invalid(field: &'static str, value: impl ToString, bound: &str) -> Invalid {
    Invalid { field, value: value.to_string(), bound: bound.to_owned() }
}

fn span(field: &'static str, span: Micros) -> Result<(), Invalid> {
    if span == Micros::ZERO {
        return Err(invalid(field, "0", "it must be at least 1 microsecond"));
    }
    if span > LONGEST_SPAN {
        return Err(invalid(field, span, "it must be at most 100 years"));
    }
    Ok(())
}

fn units(field: &'static str, units: u64) -> Result<(), Invalid> {
    if units >= CEILING {
        return Err(invalid(field, units, "it must be below 2^52"));
    }
    Ok(())
}

fn fits(burst: u64, per_token: u64) -> bool {
    burst.checked_mul(per_token).is_some_and(|capacity| capacity < CEILING)
}

/// `per_token / drain` with the largest power of two as drain that keeps the capacity countable.
fn scaled(burst: u64, drain: u64, per_token: u64) -> Option<(u64, u64)> {
    let ticks = |k: u32| (u128::from(per_token) << k).div_ceil(u128::from(drain));
    let scale = |k: u32| Some((1 << k, u64::try_from(ticks(k)).ok().filter(|&ticks| fits(burst, ticks))?));
    (0..52).rev().find_map(scale)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
