//! Formats an algorithm in the syntax of the configuration.
//!
//! Algorithms with several names or forms are shown under one of them. `gcra`, `leaky_bucket` and `token_bucket` are
//! the same, and a bucket of one unit is `uniform`.

use weir_core::algorithm::{
    Algorithm, Bucket, DEFAULT_MAX_HELD, Engine, Grid, Interval, Log, Sliding, Slots, WarmUp, Window,
};
use weir_units::Micros;

use crate::cli::render;

const UNITS: [(u64, &str); 6] = [
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "m"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
];
const MINUTE: u64 = 60_000_000;
const DAY: u64 = 86_400_000_000;

/// Formats an algorithm, such as `token_bucket: { rate: 50/s, burst: 100 }`, with the maximum debt if it is not the
/// default.
pub(in crate::cli) fn text(algorithm: &Algorithm) -> String {
    let usual = algorithm.with_max_debt(Some(algorithm.limit()));
    let debt = match algorithm.debt_level() {
        debt if debt == usual.debt_level() => String::new(),
        None => ", max_debt: unlimited".to_owned(),
        Some(level) => {
            format!(", max_debt: {}", (level / algorithm.weight()).saturating_sub(algorithm.limit()))
        }
    };
    numbers(algorithm) + &debt
}

fn numbers(algorithm: &Algorithm) -> String {
    let limit = algorithm.limit();
    match algorithm.engine() {
        Engine::Bucket(bucket) if bucket.undelayed.is_some() || algorithm.charges_after() => {
            shaped(algorithm, bucket)
        }
        Engine::Bucket(Bucket { drain: 1, per_token, .. }) if limit == 1 => {
            format!("uniform: {{ interval: {} }}", span(*per_token))
        }
        Engine::Bucket(bucket) => format!("token_bucket: {{ rate: {}, burst: {limit} }}", rate(bucket)),
        Engine::Window(window) => {
            format!("fixed_window: {{ limit: {limit}, {}{} }}", windows(window), denied(algorithm))
        }
        Engine::Interval(Interval { refill, period, aligned }) => {
            let aligned = if *aligned { ", aligned: true" } else { "" };
            format!(
                "interval_refill: {{ capacity: {limit}, refill: {refill}, period: {}{aligned} }}",
                span(*period)
            )
        }
        Engine::Log(Log { span: window, max_held, .. }) if *max_held > 0 => {
            let held =
                if *max_held == DEFAULT_MAX_HELD { String::new() } else { format!(", max_held: {max_held}") };
            format!("sliding_log: {{ limit: {limit}, window: {}, hold: true{held} }}", span(*window))
        }
        Engine::Log(Log { span: window, min_gap, .. }) => {
            let gap = if *min_gap > 0 { format!(", min_gap: {}", span(*min_gap)) } else { String::new() };
            let denied = denied(algorithm);
            format!("sliding_log: {{ limit: {limit}, window: {}{denied}{gap} }}", span(*window))
        }
        Engine::Sliding(Sliding { span: window }) => {
            format!("sliding_window: {{ limit: {limit}, window: {} }}", span(*window))
        }
        Engine::WarmUp(numbers) => {
            let WarmUp { count, period, warm_up, cold_factor } = *numbers;
            format!(
                "warm_up: {{ rate: {count}/{}, period: {}, cold_factor: {cold_factor}, max_cost: {limit} }}",
                span(period),
                span(warm_up)
            )
        }
        Engine::Slots(slots) => {
            let strict = if slots.is_strict() { "" } else { ", strict: false" };
            let parts = match is_even(slots) {
                true => format!("buckets: {}", slots.parts()),
                false => format!("accuracy: {}", accuracy(slots.width())),
            };
            let expire = slots.expire().map_or(String::new(), |expire| format!(", expire: {}", span(expire)));
            format!(
                "bucketed_window: {{ limit: {limit}, window: {}, {parts}{strict}{expire} }}",
                span(slots.window())
            )
        }
    }
}

/// True if all parts have one length.
const fn is_even(slots: &Slots) -> bool {
    slots.window().is_multiple_of(slots.width())
}

/// The shortest number of parts per second whose parts have this length, in microseconds.
fn accuracy(width: u64) -> String {
    const PLACES: u32 = 6;
    const SECOND: u64 = 1_000_000;
    let scaled = (0..=PLACES).find_map(|places| {
        let scale = 10_u64.pow(places);
        let number = SECOND * scale / width;
        (number > 0 && (SECOND * scale).div_ceil(number) == width).then_some((number, scale))
    });
    // Every width that the configuration can give has one.
    let (number, scale) = scaled.unwrap_or((SECOND * SECOND / width, SECOND));
    let places = scale.ilog10() as usize;
    match places {
        0 => number.to_string(),
        _ => format!("{}.{:0places$}", number / scale, number % scale),
    }
}

/// Describes the parts of a bucketed window that are not all of one length.
pub(super) fn parts(algorithm: &Algorithm) -> String {
    match algorithm.engine() {
        Engine::Slots(slots) if !is_even(slots) => {
            let last = span(slots.window() % slots.width());
            format!("; {} parts of {}, the last of {last}", slots.parts(), span(slots.width()))
        }
        _ => String::new(),
    }
}

/// Formats a bucket with a queue or with charge-after.
fn shaped(algorithm: &Algorithm, bucket: &Bucket) -> String {
    let (limit, rate) = (algorithm.limit(), rate(bucket));
    let units = |level: u64| level / algorithm.weight();
    match bucket.undelayed.map(units) {
        None => {
            let burst = units(algorithm.capacity());
            format!("token_bucket: {{ rate: {rate}, burst: {burst}, charge_after: true, max_cost: {limit} }}")
        }
        Some(delay) => {
            let burst = limit.saturating_sub(1);
            let delay = match delay {
                0 => String::new(),
                delay if delay == burst => ", nodelay: true".to_owned(),
                delay => format!(", delay: {delay}"),
            };
            format!("leaky_queue: {{ rate: {rate}, burst: {burst}{delay} }}")
        }
    }
}

fn denied(algorithm: &Algorithm) -> &'static str {
    if algorithm.counts_denied() { ", count_denied: true" } else { "" }
}

/// Formats a rate in the smallest usual period, from a second on, in which it is a whole number.
pub(super) fn rate(bucket: &Bucket) -> String {
    let whole = |(period, unit): &(u64, &str)| {
        let count = bucket.drain.checked_mul(*period).filter(|count| count % bucket.per_token == 0)?;
        Some(format!("{}/{unit}", count / bucket.per_token))
    };
    let usual = UNITS.iter().rev().filter(|(period, _)| *period >= 1_000_000).find_map(whole);
    usual.unwrap_or_else(|| format!("{}/{}", bucket.drain, span(bucket.per_token)))
}

fn windows(window: &Window) -> String {
    // Offsets are relative to a day behind UTC, so that none is negative.
    match window.grid {
        Grid::Aligned { ahead: 0 } => format!("window: {}", span(window.span)),
        Grid::Aligned { ahead } => format!("calendar: day, offset: \"{}\"", offset(ahead, 0)),
        Grid::Spread => format!("window: {}, spread: true", span(window.span)),
        Grid::Anchored => format!("window: {}, anchored: true", span(window.span)),
        Grid::Month { ahead } => format!("calendar: month, offset: \"{}\"", offset(ahead, DAY)),
    }
}

fn offset(ahead: u64, utc: u64) -> String {
    let (sign, minutes) = match ahead.checked_sub(utc) {
        Some(east) => ('+', east / MINUTE),
        None => ('-', (utc - ahead) / MINUTE),
    };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Formats a duration in the largest unit in which it is a whole number.
pub(in crate::cli) fn span(us: u64) -> String {
    let whole = UNITS.iter().find(|(unit, _)| us >= *unit && us.is_multiple_of(*unit));
    whole.map_or_else(|| "0s".to_owned(), |(unit, name)| format!("{}{name}", us / unit))
}

/// A time that nobody has written: from a minute on in two units.
pub(super) fn for_people(time: Micros) -> String {
    match time {
        Micros(..60_000_000) => span(time.0),
        Micros(micros) => {
            let seconds = i64::try_from(micros.div_ceil(1_000_000)).unwrap_or(i64::MAX);
            render::duration(&prost_types::Duration { seconds, nanos: 0 })
        }
    }
}
