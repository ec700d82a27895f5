//! The algorithms that tables are about.

use serde::Deserialize;
use serde_json::Value;
use weir_core::algorithm::{Algorithm, DEFAULT_MAX_HELD, Invalid, Rate};
use weir_units::{CEILING, Micros};

use super::table::parse;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gate {
    interval_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bucket {
    burst: u64,
    rate: u64,
    period_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    burst: u64,
    rate: u64,
    period_us: u64,
    #[serde(default)]
    delay_tokens: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChargeAfter {
    burst: u64,
    rate: u64,
    period_us: u64,
    max_cost: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WarmUp {
    permits_per_s: u64,
    warmup_us: u64,
    cold_factor: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cycles {
    limit: u64,
    period_us: u64,
    #[serde(default, rename = "timeout_us")]
    _timeout_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Interval {
    capacity: u64,
    refill: u64,
    period_us: u64,
    #[serde(default)]
    aligned: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Calendar {
    limit: u64,
    calendar: String,
    offset_minutes: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    limit: u64,
    window_us: u64,
    #[serde(default)]
    anchored: bool,
    #[serde(default)]
    spread: bool,
    #[serde(default)]
    count_denied: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    limit: u64,
    window_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Buckets {
    limit: u64,
    window_us: u64,
    buckets: u64,
    strict: bool,
    expire_us: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnevenParts {
    limit: u64,
    window_us: u64,
    part_us: u64,
    strict: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ring {
    bucket_us: u64,
    span_us: u64,
    expire_us: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrictLog {
    limit: u64,
    window_us: u64,
    #[serde(default)]
    min_gap_us: u64,
    #[serde(default = "yes")]
    count_denied: bool,
}

/// The algorithm of a table, from its name and its numbers.
pub fn algorithm(id: &str, name: &str, config: Value) -> Algorithm {
    let made = match name {
        "uniform_gate" => {
            let Gate { interval_us } = parse(id, config);
            Algorithm::uniform(Micros(interval_us))
        }
        "bucket" | "reserve" => {
            let Bucket { burst, rate, period_us } = parse(id, config);
            Algorithm::bucket(burst, Rate { count: rate, period: Micros(period_us) })
        }
        "leaky_queue" => {
            let Queue { burst, rate, period_us, delay_tokens } = parse(id, config);
            Algorithm::leaky_queue(burst, Rate { count: rate, period: Micros(period_us) }, delay_tokens)
        }
        "charge_after" => {
            let ChargeAfter { burst, rate, period_us, max_cost } = parse(id, config);
            Algorithm::charge_after(burst, Rate { count: rate, period: Micros(period_us) }, max_cost)
        }
        "cycles" | "reserve_interval" => {
            let Cycles { limit, period_us, .. } = parse(id, config);
            Algorithm::interval_refill(limit, limit, Micros(period_us), true)
        }
        "guava_warmup" => {
            let WarmUp { permits_per_s, warmup_us, cold_factor } = parse(id, config);
            let rate = Rate { count: permits_per_s, period: Micros::from_secs(1) };
            Algorithm::warm_up(rate, Micros(warmup_us), cold_factor, None)
        }
        "interval_bucket" => {
            let Interval { capacity, refill, period_us, aligned } = parse(id, config);
            Algorithm::interval_refill(capacity, refill, Micros(period_us), aligned)
        }
        "fixed_window" => {
            let Window { limit, window_us, anchored, spread, count_denied } = parse(id, config);
            match (spread, anchored) {
                (true, false) => Algorithm::spread_window(limit, Micros(window_us), count_denied),
                (true, true) => panic!("{id}: an anchored window cannot be spread"),
                (false, _) => Algorithm::fixed_window(limit, Micros(window_us), anchored, count_denied),
            }
        }
        "sliding_log" => {
            let Log { limit, window_us } = parse(id, config);
            Algorithm::sliding_log(limit, Micros(window_us))
        }
        "held_log" => {
            let Log { limit, window_us } = parse(id, config);
            Algorithm::held_log(limit, Micros(window_us), DEFAULT_MAX_HELD)
        }
        "calendar_window" => {
            let Calendar { limit, calendar, offset_minutes } = parse(id, config);
            let calendar = match calendar.as_str() {
                "day" => weir_core::algorithm::Calendar::Day,
                "month" => weir_core::algorithm::Calendar::Month,
                other => panic!("{id}: the calendar `{other}` is not understood"),
            };
            Algorithm::calendar_window(limit, calendar, offset_minutes, false)
        }
        "sliding_counter" => {
            let Log { limit, window_us } = parse(id, config);
            Algorithm::sliding_window(limit, Micros(window_us))
        }
        "bucketed_window" | "many_buckets" => {
            let Buckets { limit, window_us, buckets, strict, expire_us } = parse(id, config);
            expiring(Algorithm::bucketed_window(limit, Micros(window_us), buckets, strict), expire_us)
        }
        "uneven_parts" | "many_uneven_parts" => {
            let UnevenParts { limit, window_us, part_us, strict } = parse(id, config);
            Algorithm::parted_window(limit, Micros(window_us), Micros(part_us), strict)
        }
        // It never denies.
        "ring_count" => {
            let Ring { bucket_us, span_us, expire_us } = parse(id, config);
            let made = Algorithm::bucketed_window(CEILING - 1, Micros(span_us), span_us / bucket_us, false);
            expiring(made, expire_us)
        }
        "strict_log" => {
            let StrictLog { limit, window_us, min_gap_us, count_denied } = parse(id, config);
            Algorithm::strict_log(limit, Micros(window_us), count_denied, Micros(min_gap_us))
        }
        other => panic!("{id}: the algorithm `{other}` is not understood"),
    };
    made.unwrap_or_else(|e| panic!("{id}: {e}"))
}

/// With an expiry of its states, if one is given.
fn expiring(made: Result<Algorithm, Invalid>, expire_us: Option<u64>) -> Result<Algorithm, Invalid> {
    expire_us.map_or_else(|| made.clone(), |expire| made.clone()?.with_expiry(Micros(expire)))
}

fn yes() -> bool {
    true
}
