//! The algorithm of a limit and its parameters.

use weir_core::algorithm::{Algorithm, Calendar, DEFAULT_MAX_HELD, Invalid, MAX_BUCKETS, Rate};
use weir_units::{CEILING, Micros};

use super::accuracy;
use super::errors::MistakeReport;
use super::fields::{KeyedValue, Mapping};
use super::quantities::{duration, rate};
use super::values::{Scalar, boolean, integer, quote};

/// Placeholder for a duration while another parameter is checked.
const SECOND: Micros = Micros::from_secs(1);

/// An algorithm, or the parameter that is out of bounds.
type Made = Result<Algorithm, Invalid>;

/// Reads the parameters of an algorithm. `None`: something was missing or wrong, and was reported. All fields are
/// read before any is required, so that one mistake does not hide another.
type AlgorithmReader = fn(&mut Mapping<'_>, &mut MistakeReport) -> Option<Made>;

const ALGORITHMS: [(&str, AlgorithmReader); 11] = [
    ("uniform", uniform),
    ("token_bucket", bucket),
    ("gcra", bucket),
    ("leaky_bucket", leaky_bucket),
    ("leaky_queue", leaky_queue),
    ("warm_up", warm_up),
    ("fixed_window", fixed_window),
    ("interval_refill", interval_refill),
    ("sliding_window", sliding_window),
    ("bucketed_window", bucketed_window),
    ("sliding_log", sliding_log),
];

/// Keys that replace a strategy's `limits`, and so are mistakes in a limit.
const STRATEGIES: [&str; 1] = ["concurrency"];

/// True if an algorithm has this name.
pub(super) fn is_algorithm(name: &str) -> bool {
    ALGORITHMS.iter().any(|(known, _)| *known == name)
}

/// Reads the single algorithm among the keys of a limit, with the maximum debt.
pub(super) fn algorithm(limit: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Algorithm> {
    let later = STRATEGIES.into_iter().filter_map(|name| Some((limit.take_entry(name)?, None)));
    let mut found: Vec<(KeyedValue<'_>, Option<AlgorithmReader>)> = later.collect();
    found.extend(
        ALGORITHMS.into_iter().filter_map(|(name, reader)| Some((limit.take_entry(name)?, Some(reader)))),
    );
    found.sort_by_key(|(entry, _)| entry.key_at);
    if found.is_empty() && limit.is_whole() {
        let names: Vec<&str> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
        limit.report_here(report, format!("has no algorithm; give it one of {}", names.join(", ")));
    }
    let first = found.first().map(|(entry, _)| entry.name);
    let mut algorithm = None;
    for (index, (entry, reader)) in found.iter().enumerate() {
        if let Some(first) = first.filter(|_| index > 0) {
            let reason = format!("a limit has one algorithm, and this one has `{first}` already");
            entry.report(report, reason);
        }
        match reader {
            Some(reader) => algorithm = read(entry, *reader, report),
            None => {
                let reason = format!("write `{}` in place of the strategy's `limits`", entry.name);
                entry.report(report, reason);
            }
        }
    }
    let max_debt = limit.read("max_debt", report, max_debt);
    algorithm.map(|made| made.with_max_debt(max_debt.unwrap_or(Some(made.limit()))))
}

/// Reads how far debits may exceed the limit: a number of units, or `None` for `unlimited`.
fn max_debt(s: Scalar<'_>) -> Result<Option<u64>, String> {
    match s.text {
        "unlimited" => Ok(None),
        _ => match integer(s).map_err(|reason| format!("{reason}, or `unlimited`"))? {
            units if units < CEILING => Ok(Some(units)),
            units => Err(out_of_bounds(&units.to_string(), "it must be below 2^52, or `unlimited`")),
        },
    }
}

fn read(entry: &KeyedValue<'_>, reader: AlgorithmReader, report: &mut MistakeReport) -> Option<Algorithm> {
    let mut fields = Mapping::new(&entry.value, report);
    let made = reader(&mut fields, report);
    let algorithm = made.and_then(|made| match made {
        Ok(algorithm) => Some(algorithm),
        Err(Invalid { field, value, bound }) => {
            fields.report(field, report, out_of_bounds(&value, &bound));
            None
        }
    });
    fields.finish(report);
    algorithm
}

fn uniform(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let interval = span(fields, "interval", report);
    Some(Algorithm::uniform(interval?))
}

fn bucket(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let given = required_rate(fields, report);
    let burst = fields.read("burst", report, integer);
    let charge_after = fields.read("charge_after", report, boolean).unwrap_or(false);
    let max_cost = fields.take_entry("max_cost");
    if let Some(entry) = max_cost.as_ref().filter(|_| !charge_after) {
        let reason = "is for calls that pay afterwards; add `charge_after: true`, or remove `max_cost`";
        entry.report(report, reason);
    }
    let max_cost = max_cost.map(|entry| entry.value.read(report, integer));
    let rate = given?;
    let burst = burst.unwrap_or(rate.count);
    if !charge_after {
        return Some(Algorithm::bucket(burst, rate));
    }
    let max_cost = max_cost.unwrap_or_else(|| Some(burst.saturating_mul(10)))?;
    Some(Algorithm::charge_after(burst, rate, max_cost))
}

/// Leaky bucket as a meter, which is the token bucket. The one as a queue is `leaky_queue`.
fn leaky_bucket(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let reason = "is for a queue, and leaky_bucket is a meter; write `leaky_queue`, which makes callers wait";
    fields.refuse(&["queue", "delay", "nodelay", "max_delay", "max_wait"], reason, report);
    bucket(fields, report)
}

/// Leaky bucket as a queue, like nginx's `limit_req`: `delay` calls of the burst pass without delay, with
/// `nodelay` all of them.
fn leaky_queue(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let rate = required_rate(fields, report);
    let burst = fields.read("burst", report, integer);
    let nodelay = fields.read("nodelay", report, boolean).unwrap_or(false);
    let delay = fields.take_entry("delay");
    if let Some(entry) = delay.as_ref().filter(|_| nodelay) {
        let reason = "cannot stand beside `nodelay`, which delays nothing; remove one of them";
        entry.report(report, reason);
    }
    let delay = delay.map(|entry| entry.value.read(report, integer));
    let burst = burst.unwrap_or(0);
    let delay = if nodelay { burst } else { delay.unwrap_or(Some(0))? };
    Some(Algorithm::leaky_queue(burst, rate?, delay))
}

/// Guava's SmoothWarmingUp.
fn warm_up(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let rate = required_rate(fields, report);
    let period = span(fields, "period", report);
    let cold_factor = fields.read("cold_factor", report, integer).unwrap_or(3);
    let max_cost = fields.read("max_cost", report, integer);
    Some(Algorithm::warm_up(rate?, period?, cold_factor, max_cost))
}

fn required_rate(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Rate> {
    let given = fields.require("rate", "say how fast units come back, such as 30/1m", report);
    given.and_then(|value| value.read(report, |s| bounded(rate(s)?, |rate| Algorithm::bucket(0, rate))))
}

fn fixed_window(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let limit = units(fields, "limit", report, |limit| Algorithm::fixed_window(limit, SECOND, false, false));
    let count_denied = fields.read("count_denied", report, boolean).unwrap_or(false);
    if let Some(given) = fields.take("calendar") {
        let day_or_month = given.read(report, calendar);
        let offset = fields.read("offset", report, offset_minutes);
        for other in ["window", "anchored", "spread"] {
            if let Some(entry) = fields.take_entry(other) {
                let reason = format!(
                    "cannot stand beside `calendar`, which says where windows start and end; remove `{other}`"
                );
                entry.report(report, reason);
            }
        }
        return Some(Algorithm::calendar_window(limit?, day_or_month?, offset.unwrap_or(0), count_denied));
    }
    let window = span(fields, "window", report);
    let anchored = fields.read("anchored", report, boolean).unwrap_or(false);
    if let Some(entry) = fields.take_entry("offset") {
        entry.report(report, "only a window by the calendar has an offset; add `calendar: day`");
    }
    let spread = fields.take_entry("spread");
    if spread.as_ref().and_then(|entry| entry.value.read(report, boolean)) == Some(true) {
        if let Some(entry) = spread.filter(|_| anchored) {
            let reason =
                "cannot stand beside `anchored`: windows that start at the first hit are spread already";
            entry.report(report, reason);
        }
        return Some(Algorithm::spread_window(limit?, window?, count_denied));
    }
    Some(Algorithm::fixed_window(limit?, window?, anchored, count_denied))
}

fn calendar(s: Scalar<'_>) -> Result<Calendar, String> {
    match s.text {
        "day" => Ok(Calendar::Day),
        "month" => Ok(Calendar::Month),
        other => Err(format!("{} is neither day nor month", quote(other))),
    }
}

/// Parses a UTC offset, such as `+02:00` or `-05:30`, as minutes.
fn offset_minutes(s: Scalar<'_>) -> Result<i64, String> {
    let two_digits = |text: &str| match text.as_bytes() {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(i64::from((a - b'0') * 10 + (b - b'0'))),
        _ => None,
    };
    let parse = || {
        let (sign, rest) = match s.text.split_at_checked(1)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
        (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
    };
    parse().ok_or_else(|| {
        format!(
            "{} is not an offset; write how far clocks are ahead of UTC, such as \"+02:00\" or \"-05:30\"",
            quote(s.text)
        )
    })
}

fn interval_refill(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let alone = |capacity, refill| Algorithm::interval_refill(capacity, refill, Micros(1), false);
    let capacity = units(fields, "capacity", report, |capacity| alone(capacity, CEILING - 1));
    let refill = units(fields, "refill", report, |refill| alone(0, refill));
    let period = span(fields, "period", report);
    let aligned = fields.read("aligned", report, boolean).unwrap_or(false);
    Some(Algorithm::interval_refill(capacity?, refill?, period?, aligned))
}

fn sliding_window(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let limit = units(fields, "limit", report, |limit| Algorithm::sliding_window(limit, SECOND));
    let window = span(fields, "window", report);
    Some(Algorithm::sliding_window(limit?, window?))
}

/// Strict by default; the variant that may exceed its limit is opt-in.
fn bucketed_window(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let alone = |limit, buckets: u64| {
        // A window of as many microseconds as it has buckets is always divisible.
        Algorithm::bucketed_window(limit, Micros(buckets.clamp(1, MAX_BUCKETS)), buckets, true)
    };
    let limit = units(fields, "limit", report, |limit| alone(limit, 1));
    let window = span(fields, "window", report);
    let expire = fields.read("expire", report, duration);
    let expiring = |made: Result<Algorithm, Invalid>| match expire {
        Some(expire) => made?.with_expiry(expire),
        None => made,
    };
    let Some(accuracy) = fields.take_entry("accuracy") else {
        let buckets = units(fields, "buckets", report, |buckets| alone(0, buckets));
        let strict = fields.read("strict", report, boolean).unwrap_or(true);
        return Some(expiring(Algorithm::bucketed_window(limit?, window?, buckets?, strict)));
    };
    let both = fields.take_entry("buckets").is_some();
    if both {
        let reason = "cannot stand beside `buckets`: both say how many parts there are";
        accuracy.report(report, reason);
    }
    let width = accuracy.value.read(report, |scalar| accuracy::width(scalar.text, window)).filter(|_| !both);
    let strict = fields.read("strict", report, boolean).unwrap_or(true);
    Some(expiring(Algorithm::parted_window(limit?, window?, width?, strict)))
}

/// A log that may hold `max_held` reservations.
fn held(max_held: u64) -> Result<Algorithm, Invalid> {
    Algorithm::held_log(1, SECOND, max_held)
}

fn sliding_log(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Option<Made> {
    let limit = units(fields, "limit", report, |limit| Algorithm::sliding_log(limit, SECOND));
    let window = span(fields, "window", report);
    let count_denied = fields.read("count_denied", report, boolean).unwrap_or(false);
    let min_gap = fields.read("min_gap", report, duration).unwrap_or(Micros::ZERO);
    let max_held = fields.take_entry("max_held");
    let hold = fields.take_entry("hold");
    if hold.as_ref().and_then(|entry| entry.value.read(report, boolean)) == Some(true) {
        if let Some(entry) = hold.filter(|_| count_denied || min_gap > Micros::ZERO) {
            let reason =
                "cannot stand beside `count_denied` or `min_gap`: reservations are those of a plain log";
            entry.report(report, reason);
        }
        let most = max_held.map(|entry| entry.value.read(report, |s| bounded(integer(s)?, held)));
        return Some(Algorithm::held_log(limit?, window?, most.unwrap_or(Some(DEFAULT_MAX_HELD))?));
    }
    if let Some(entry) = max_held {
        let reason = "needs `hold: true`; it bounds how many reservations lie ahead";
        entry.report(report, reason);
    }
    Some(Algorithm::strict_log(limit?, window?, count_denied, min_gap))
}

fn span(fields: &mut Mapping<'_>, name: &'static str, report: &mut MistakeReport) -> Option<Micros> {
    let value = fields.require(name, "give it a duration, such as 10s", report)?;
    value.read(report, |s| match s.text {
        "day" | "month" => Err(format!(
            "`{}` is not a duration; of a fixed_window write `calendar: {}` instead of `window`",
            s.text, s.text
        )),
        "minute" | "hour" | "week" | "quarter" | "year" => Err(format!(
            "`{}` is not a duration, and calendar windows are days and months only; write one, such as 24h",
            s.text
        )),
        _ => bounded(duration(s)?, Algorithm::uniform),
    })
}

/// Reads a number that `alone` accepts, that is, one within its own bounds.
fn units(
    fields: &mut Mapping<'_>,
    name: &'static str,
    report: &mut MistakeReport,
    alone: impl Fn(u64) -> Result<Algorithm, Invalid>,
) -> Option<u64> {
    let value = fields.require(name, "give it a whole number", report)?;
    value.read(report, |s| bounded(integer(s)?, alone))
}

/// Checks a value against its own bounds. Parameters are first checked one by one and then in combination, so that
/// each mistake is reported.
fn bounded<T: Copy>(value: T, alone: impl Fn(T) -> Result<Algorithm, Invalid>) -> Result<T, String> {
    alone(value).map(|_| value).map_err(|Invalid { value, bound, .. }| out_of_bounds(&value, &bound))
}

fn out_of_bounds(value: &str, bound: &str) -> String {
    format!("{value} is out of bounds: {bound}")
}
