//! Constructors of algorithms. They guarantee that the arithmetic is exact.

use super::{
    Algorithm, Bucket, Engine, Grid, Interval, Log, MAX_BUCKETS, MAX_ENTRIES, MOST_MAX_HELD, Sliding, Slots,
    UNLIMITED_DEBT, WarmUp, Window, log, sliding, window,
};
use weir_units::{CEILING, LONGEST_SPAN, Micros};

/// Units per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Units per period.
    pub count: u64,
    /// The period.
    pub period: Micros,
}

/// Largest factor of a cold limit's permits.
pub const MAX_COLD_FACTOR: u64 = 1000;

/// A window of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calendar {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

/// A parameter out of its bounds.
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
        let (drain, per_token) = ticks(rate, burst, ("burst", burst))?;
        let engine = Engine::Bucket(Bucket { drain, per_token, undelayed: None });
        Ok(Self::new(burst, per_token, CEILING, engine))
    }

    /// A queue that is drained at `rate`, of one call in service and `burst` that wait; the first `delay` of these do
    /// not wait but go ahead at once. Fields of errors: `rate`, `burst`, `delay`.
    pub fn leaky_queue(burst: u64, rate: Rate, delay: u64) -> Result<Self, Invalid> {
        let limit = burst.saturating_add(1);
        let (drain, per_token) = ticks(rate, limit, ("burst", burst))?;
        if delay > burst {
            return Err(invalid("delay", delay, &format!("it must be at most the burst, {burst}")));
        }
        let undelayed = Some(delay * per_token);
        Ok(Self::new(limit, per_token, CEILING, Engine::Bucket(Bucket { drain, per_token, undelayed })))
    }

    /// A [`Algorithm::bucket`] whose calls wait only for what earlier calls have used above `burst`; the next ones
    /// wait for their cost, which is at most `max_cost`. Fields of errors: `rate`, `burst`, `max_cost`.
    pub fn charge_after(burst: u64, rate: Rate, max_cost: u64) -> Result<Self, Invalid> {
        let (drain, per_token) = ticks(rate, burst.saturating_add(max_cost), ("max_cost", max_cost))?;
        let engine = Engine::Bucket(Bucket { drain, per_token, undelayed: None });
        let capacity = burst * per_token;
        let plain = Self::new(max_cost, per_token, CEILING, engine);
        Ok(Self { upfront: 0, capacity, is_plain: false, ..plain })
    }

    /// Permits at `rate`, once it is warm: after a time without calls, `period` later than at once. A permit of a cold
    /// limit takes `cold_factor` times as long. A call waits for the backlog of earlier ones only; its own cost, at
    /// most `max_cost`, is paid by the next. Without one, that is ten times what can be stored. Fields of errors:
    /// `rate`, `period`, `cold_factor`, `max_cost`.
    pub fn warm_up(
        rate: Rate,
        period: Micros,
        cold_factor: u64,
        max_cost: Option<u64>,
    ) -> Result<Self, Invalid> {
        ticks(rate, 0, ("rate", rate.count))?;
        span("period", period)?;
        if !(1..=MAX_COLD_FACTOR).contains(&cold_factor) {
            return Err(invalid("cold_factor", cold_factor, "it must be from 1 to 1000"));
        }
        let warm_up = WarmUp { count: rate.count, period: rate.period.0, warm_up: period.0, cold_factor };
        let Some(most) = warm_up.whole_most() else {
            let bound = "what is stored in this time must stay below 2^52 permits";
            return Err(invalid("period", period, bound));
        };
        let limit = max_cost.unwrap_or(most.saturating_mul(10));
        if !warm_up.can_take(limit) {
            let bound = "its time, of a cold limit, must stay below 2^52 microseconds (142 years)";
            return Err(invalid("max_cost", limit, bound));
        }
        Ok(Self { upfront: 0, ..Self::new(limit, 1, CEILING, Engine::WarmUp(warm_up)) })
    }

    /// Bounds forced debits: they charge until the limit is `max_debt` units above its limit; `None` leaves only the
    /// largest exact number as a bound, which is the default.
    #[must_use]
    pub fn with_max_debt(self, max_debt: Option<u64>) -> Self {
        let debt = |max: u64| self.limit.saturating_add(max).saturating_mul(self.weight).min(self.ceiling);
        Self { debt_level: max_debt.map_or(UNLIMITED_DEBT, debt), ..self }
    }

    const fn new(limit: u64, weight: u64, ceiling: u64, engine: Engine) -> Self {
        let capacity = limit * weight;
        let (upfront, debt_level, count_denied) = (weight, UNLIMITED_DEBT, false);
        let is_plain = engine.is_plain();
        Self {
            limit,
            weight,
            upfront,
            capacity,
            ceiling,
            debt_level,
            count_denied,
            is_plain,
            is_shadow: false,
            engine,
        }
    }

    /// The limit in shadow mode: it never denies, and is charged only where it would admit.
    #[must_use]
    pub const fn in_shadow(self) -> Self {
        Self { is_shadow: true, ..self }
    }

    const fn counting_denied(self, count_denied: bool) -> Self {
        Self { count_denied, is_plain: self.is_plain && !count_denied, ..self }
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
        Ok(Self::new(limit, 1, CEILING, engine).counting_denied(count_denied))
    }

    /// A [`Algorithm::fixed_window`] whose windows start at another time for each key, always the same.
    /// Fields of errors: `limit`, `window`.
    pub fn spread_window(limit: u64, window: Micros, count_denied: bool) -> Result<Self, Invalid> {
        span("window", window)?;
        units("limit", limit)?;
        let engine = Engine::Window(Window { span: window.0, grid: Grid::Spread });
        Ok(Self::new(limit, 1, CEILING, engine).counting_denied(count_denied))
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
        Ok(Self::new(limit, 1, CEILING, engine).counting_denied(count_denied))
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
        Ok(Self::new(capacity, 1, ceiling, engine))
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
        // Denied attempts are kept up to one unit above the limit.
        if count_denied && limit == MAX_ENTRIES {
            return Err(invalid("limit", limit, "with `count_denied` it is at most 9999"));
        }
        if min_gap > window {
            return Err(invalid("min_gap", min_gap, "it must be at most the window"));
        }
        let keep = if count_denied { limit + 1 } else { u64::MAX };
        let engine = Engine::Log(Log { span: window.0, min_gap: min_gap.0, keep, max_held: 0 });
        Ok(Self::new(limit, 1, log::CEILING, engine).counting_denied(count_denied))
    }

    /// A [`Algorithm::sliding_log`] that accepts reservations, of which at most `max_held` lie ahead. Fields of errors:
    /// `limit`, `window`, `max_held`.
    pub fn held_log(limit: u64, window: Micros, max_held: u64) -> Result<Self, Invalid> {
        let plain = Self::sliding_log(limit, window)?;
        if !(1..=MOST_MAX_HELD).contains(&max_held) {
            return Err(invalid("max_held", max_held, "it must be from 1 to 1000"));
        }
        let engine = Engine::Log(Log { span: window.0, min_gap: 0, keep: u64::MAX, max_held });
        Ok(Self::new(plain.limit, plain.weight, plain.ceiling, engine))
    }

    /// At most `limit` units in the window that slides, where the aligned window before counts by the part
    /// of it that is still in view. Fields of errors: `limit`, `window`.
    pub fn sliding_window(limit: u64, window: Micros) -> Result<Self, Invalid> {
        span("window", window)?;
        if limit >= sliding::CEILING {
            return Err(invalid("limit", limit, "it must be below 2^51"));
        }
        let engine = Engine::Sliding(Sliding { span: window.0 });
        Ok(Self::new(limit, 1, sliding::CEILING, engine))
    }

    /// At most `limit` units in the newest `buckets` parts of the window; `strict`, one part more, so that
    /// no span of the window ever has more. Fields of errors: `limit`, `window`, `buckets`.
    pub fn bucketed_window(limit: u64, window: Micros, buckets: u64, strict: bool) -> Result<Self, Invalid> {
        span("window", window)?;
        units("limit", limit)?;
        if !(1..=MAX_BUCKETS).contains(&buckets) {
            return Err(invalid("buckets", buckets, "it must be from 1 to 3600"));
        }
        if !window.0.is_multiple_of(buckets) {
            let nearest =
                nearest_divisors(window, buckets).map_or_else(String::new, |text| format!("; {text}"));
            let bound = format!(
                "the window of {window} must be so many times a whole number of microseconds{nearest}"
            );
            return Err(invalid("buckets", buckets, &bound));
        }
        Self::parted_window(limit, window, Micros(window.0 / buckets), strict)
    }

    /// A [`Algorithm::bucketed_window`] whose parts are `width` long, but the last one of each window, which may be shorter. A
    /// width above the window is the window. Fields of errors: `limit`, `window`, `accuracy`.
    pub fn parted_window(limit: u64, window: Micros, width: Micros, strict: bool) -> Result<Self, Invalid> {
        span("window", window)?;
        units("limit", limit)?;
        let Some(slots) = Slots::new(width.0.min(window.0), window.0, strict) else {
            return Err(invalid("accuracy", width, "a window has 1 to 3600 parts"));
        };
        Ok(Self::new(limit, 1, CEILING, Engine::Slots(slots)))
    }

    /// A bucketed window whose states are kept for `expire` after their last charge, at least; other algorithms stay as they
    /// are. Nothing that is decided depends on it. Field of errors: `expire`.
    pub fn with_expiry(self, expire: Micros) -> Result<Self, Invalid> {
        let Engine::Slots(slots) = self.engine else { return Ok(self) };
        span("expire", expire)?;
        let Some(slots) = slots.expiring(expire.0) else {
            let bound = format!(
                "it must be at least the window, {}: what has been charged counts for so long",
                Micros(slots.window())
            );
            return Err(invalid("expire", expire, &bound));
        };
        Ok(Self { engine: Engine::Slots(slots), ..self })
    }
}

/// Names the numbers of buckets next to `buckets` that divide the window.
fn nearest_divisors(window: Micros, buckets: u64) -> Option<String> {
    let divides = |count: &u64| window.0.is_multiple_of(*count);
    let below = (1..buckets).rev().find(divides)?;
    Some(match (buckets + 1..=MAX_BUCKETS).find(divides) {
        Some(above) => format!("the nearest that fit are {below} and {above}"),
        None => format!("the nearest that fits is {below}"),
    })
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

/// Returns the ticks that drain per microsecond, and ticks of a unit, so that `units` of them can be counted; `named` is
/// the field to blame where they cannot.
fn ticks(rate: Rate, units: u64, named: (&'static str, u64)) -> Result<(u64, u64), Invalid> {
    span("rate", rate.period)?;
    if rate.count == 0 {
        return Err(invalid("rate", "0", "a rate of 0 never refills; it must be at least 1 per period"));
    }
    if rate.count >= CEILING {
        return Err(invalid("rate", rate.count, "it must be below 2^52 per period"));
    }
    let divisor = gcd(rate.count, rate.period.0);
    let (drain, per_token) = (rate.count / divisor, rate.period.0 / divisor);
    if fits(units, per_token) {
        return Ok((drain, per_token));
    }
    let bound = || match named.0 {
        "max_cost" => {
            "burst and max_cost, times the time for one unit, must stay below 2^52 microseconds (142 years)"
        }
        _ => "burst times the time for one unit must stay below 2^52 microseconds (142 years)",
    };
    scaled(units, drain, per_token).ok_or_else(|| invalid(named.0, named.1, bound()))
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

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
