//! Algorithms and their numbers.

use weir_core::algorithm::{Algorithm, Calendar, Rate};
use weir_units::Micros;

use super::{algorithm, configured, limit, refused, refused_rows};

#[test]
fn a_limit_has_one_algorithm() {
    refused_rows(
        limit,
        r#"
uniformly: { interval: 1s }
    4:9: strategies.a.limits[0]: has no algorithm; give it one of uniform, token_bucket, gcra, leaky_bucket, leaky_queue, warm_up, fixed_window, interval_refill, sliding_window, bucketed_window, sliding_log
    4:37: strategies.a.limits[0].uniformly: unknown key; did you mean `uniform`?
uniform: { interval: 1s }, gcra: { rate: 1/s }
    4:64: strategies.a.limits[0].gcra: a limit has one algorithm, and this one has `uniform` already
concurrency: { limit: 1 }
    4:37: strategies.a.limits[0].concurrency: write `concurrency` in place of the strategy's `limits`
uniform: 1s => 4:46: strategies.a.limits[0].uniform: must be a mapping of keys, not a single value
uniform: => 4:37: strategies.a.limits[0].uniform.interval: is missing; give it a duration, such as 10s
uniform: { intervall: 1s }
    4:46: strategies.a.limits[0].uniform.interval: is missing; give it a duration, such as 10s
    4:48: strategies.a.limits[0].uniform.intervall: unknown key; did you mean `interval`?
"#,
    );
}

#[test]
fn numbers_that_no_limit_has() {
    refused_rows(
        limit,
        r#"
uniform: { interval: 0s }
    4:58: strategies.a.limits[0].uniform.interval: 0 is out of bounds: it must be at least 1 microsecond
uniform: { interval: 5218w }
    4:58: strategies.a.limits[0].uniform.interval: 3155846400s is out of bounds: it must be at most 100 years
token_bucket: { rate: 0/1m }
    4:59: strategies.a.limits[0].token_bucket.rate: 0 is out of bounds: a rate of 0 never refills; it must be at least 1 per period
token_bucket: { rate: 5/0s }
    4:59: strategies.a.limits[0].token_bucket.rate: 0 is out of bounds: it must be at least 1 microsecond
token_bucket: { rate: 5/0s, burst: x }
    4:59: strategies.a.limits[0].token_bucket.rate: 0 is out of bounds: it must be at least 1 microsecond
    4:72: strategies.a.limits[0].token_bucket.burst: "x" is not a whole number of at least 0
token_bucket: { rate: 1/52w, burst: 1_000_000_000 }
    4:73: strategies.a.limits[0].token_bucket.burst: 1000000000 is out of bounds: burst times the time for one unit must stay below 2^52 microseconds (142 years)
token_bucket: { burst: 5 }
    4:51: strategies.a.limits[0].token_bucket.rate: is missing; say how fast units come back, such as 30/1m
token_bucket: { rate: 30 }
    4:59: strategies.a.limits[0].token_bucket.rate: "30" is not a rate; write COUNT/DURATION, such as 30/1m or 5/s
token_bucket: { rate: a/s }
    4:59: strategies.a.limits[0].token_bucket.rate: the count of "a/s" is not a whole number; write COUNT/DURATION, such as 30/1m or 5/s
token_bucket: { rate: 0.5/s }
    4:59: strategies.a.limits[0].token_bucket.rate: the count of "0.5/s" is not a whole number; write 1/2s
token_bucket: { rate: 1/s }, max_debt: lots
    4:76: strategies.a.limits[0].max_debt: "lots" is not a whole number of at least 0, or `unlimited`
token_bucket: { rate: 30/1x }
    4:59: strategies.a.limits[0].token_bucket.rate: the period of "30/1x": "1x" is not a duration; write whole numbers with units, such as 10s, 250ms or 1m30s (units: us, ms, s, m, h, d, w)
token_bucket: { rate: 30/60 }
    4:59: strategies.a.limits[0].token_bucket.rate: the period of "30/60": "60" has no unit; write one of us, ms, s, m, h, d, w after it, such as 10s
token_bucket: { rate: 99999999999999999999/s }
    4:59: strategies.a.limits[0].token_bucket.rate: the count of "99999999999999999999/s" is too large: at most 18446744073709551615
gcra: { rate: 4503599627370496/s }
    4:51: strategies.a.limits[0].gcra.rate: 4503599627370496 is out of bounds: it must be below 2^52 per period
fixed_window: { limit: -1, window: 1s }
    4:60: strategies.a.limits[0].fixed_window.limit: "-1" is not a whole number of at least 0
fixed_window: { limit: 1 }
    4:51: strategies.a.limits[0].fixed_window.window: is missing; give it a duration, such as 10s
fixed_window: { window: 1s } => 4:51: strategies.a.limits[0].fixed_window.limit: is missing; give it a whole number
fixed_window: { limit: 4503599627370496, window: 1s }
    4:60: strategies.a.limits[0].fixed_window.limit: 4503599627370496 is out of bounds: it must be below 2^52
fixed_window: { limit: 1, window: 0ms }
    4:71: strategies.a.limits[0].fixed_window.window: 0 is out of bounds: it must be at least 1 microsecond
fixed_window: { limit: 1, window: 1s, anchored: 1 }
    4:85: strategies.a.limits[0].fixed_window.anchored: "1" is neither true nor false
interval_refill: {}
    4:54: strategies.a.limits[0].interval_refill.capacity: is missing; give it a whole number
    4:54: strategies.a.limits[0].interval_refill.period: is missing; give it a duration, such as 10s
    4:54: strategies.a.limits[0].interval_refill.refill: is missing; give it a whole number
interval_refill: { capacity: 5, refill: 0, period: 1s }
    4:77: strategies.a.limits[0].interval_refill.refill: 0 is out of bounds: it must be at least 1, or nothing ever comes back
interval_refill: { capacity: 4_000_000_000, refill: 1, period: 365d }
    4:66: strategies.a.limits[0].interval_refill.capacity: 4000000000 is out of bounds: the time to refill it all must stay below 2^52 microseconds (142 years)
interval_refill: { capacity: 5, refill: 5, period: 0s, aligned: no }
    4:88: strategies.a.limits[0].interval_refill.period: 0 is out of bounds: it must be at least 1 microsecond
    4:101: strategies.a.limits[0].interval_refill.aligned: "no" is neither true nor false
sliding_log: { limit: 10001, window: 1s }
    4:59: strategies.a.limits[0].sliding_log.limit: 10001 is out of bounds: a log keeps an entry per call, so its limit is at most 10000; use token_bucket or fixed_window above it
fixed_window: { limit: 1, window: 1d, anchored: true, spread: true }
    4:91: strategies.a.limits[0].fixed_window.spread: cannot stand beside `anchored`: windows that start at the first hit are spread already
fixed_window: { limit: 1, window: month }
    4:71: strategies.a.limits[0].fixed_window.window: `month` is not a duration; of a fixed_window write `calendar: month` instead of `window`
fixed_window: { limit: 1, window: week }
    4:71: strategies.a.limits[0].fixed_window.window: `week` is not a duration, and calendar windows are days and months only; write one, such as 24h
fixed_window: { limit: 1, window: 1d, calendar: day, anchored: true }
    4:63: strategies.a.limits[0].fixed_window.window: cannot stand beside `calendar`, which says where windows start and end; remove `window`
    4:90: strategies.a.limits[0].fixed_window.anchored: cannot stand beside `calendar`, which says where windows start and end; remove `anchored`
fixed_window: { limit: 1, calendar: week, offset: +2:00 }
    4:73: strategies.a.limits[0].fixed_window.calendar: "week" is neither day nor month
    4:87: strategies.a.limits[0].fixed_window.offset: "+2:00" is not an offset; write how far clocks are ahead of UTC, such as "+02:00" or "-05:30"
fixed_window: { limit: 1, calendar: day, offset: "+24:00" }
    4:86: strategies.a.limits[0].fixed_window.offset: "+24:00" is not an offset; write how far clocks are ahead of UTC, such as "+02:00" or "-05:30"
fixed_window: { limit: 1, window: 1d, offset: "+02:00" }
    4:75: strategies.a.limits[0].fixed_window.offset: only a window by the calendar has an offset; add `calendar: day`
sliding_window: { limit: 2251799813685248, window: 1s }
    4:62: strategies.a.limits[0].sliding_window.limit: 2251799813685248 is out of bounds: it must be below 2^51
sliding_window: { limit: 1 }
    4:53: strategies.a.limits[0].sliding_window.window: is missing; give it a duration, such as 10s
bucketed_window: { limit: 1, window: 1s, buckets: 3601 }
    4:87: strategies.a.limits[0].bucketed_window.buckets: 3601 is out of bounds: it must be from 1 to 3600
bucketed_window: { limit: 1, window: 1s, accuracy: 3601 }
    4:88: strategies.a.limits[0].bucketed_window.accuracy: 3601 is out of bounds: a window of 1s has 3601 parts then, and may have 3600; the nearest that works is 3600
bucketed_window: { limit: 1, window: 1s, buckets: 4, accuracy: 4 }
    4:90: strategies.a.limits[0].bucketed_window.accuracy: cannot stand beside `buckets`: both say how many parts there are
bucketed_window: { limit: 1, window: 1h, accuracy: 1.5 }
    4:88: strategies.a.limits[0].bucketed_window.accuracy: 1.5 is out of bounds: a window of 3600s has 5400 parts then, and may have 3600; the nearest that works is 1
bucketed_window: { limit: 1, window: 1m, accuracy: 1/60 }
    4:88: strategies.a.limits[0].bucketed_window.accuracy: "1/60" is a part of the window, the old form: write `buckets: 60` instead of it
bucketed_window: { limit: 1, window: 1s, buckets: 0 }
    4:87: strategies.a.limits[0].bucketed_window.buckets: 0 is out of bounds: it must be from 1 to 3600
bucketed_window: { limit: 1, window: 1s, buckets: 7 }
    4:87: strategies.a.limits[0].bucketed_window.buckets: 7 is out of bounds: the window of 1s must be so many times a whole number of microseconds; the nearest that fit are 5 and 8
bucketed_window: { window: 1s, limit: 1, strict: 1 }
    4:54: strategies.a.limits[0].bucketed_window.buckets: is missing; give it a whole number
    4:86: strategies.a.limits[0].bucketed_window.strict: "1" is neither true nor false
sliding_log: { limit: 10000, window: 1s, count_denied: true }
    4:59: strategies.a.limits[0].sliding_log.limit: 10000 is out of bounds: with `count_denied` it is at most 9999
sliding_log: { limit: 1, window: 1s, count_denied: maybe, min_gap: 1 }
    4:88: strategies.a.limits[0].sliding_log.count_denied: "maybe" is neither true nor false
    4:104: strategies.a.limits[0].sliding_log.min_gap: "1" has no unit; write one of us, ms, s, m, h, d, w after it, such as 10s
sliding_log: { limit: 1, window: 1s, min_gap: 2s }
    4:83: strategies.a.limits[0].sliding_log.min_gap: 2s is out of bounds: it must be at most the window
"#,
    );
}

#[test]
fn options_of_shaping() {
    let meter = "is for a queue, and leaky_bucket is a meter; write `leaky_queue`, which makes callers wait";
    let queues = format!(
        "4:64: strategies.a.limits[0].leaky_bucket.queue: {meter}\n4:74: strategies.a.limits[0].leaky_bucket.max_delay: {meter}"
    );
    refused_rows(
        limit,
        r#"
leaky_queue: { rate: 1/s, burst: 5, delay: 6 }
    4:80: strategies.a.limits[0].leaky_queue.delay: 6 is out of bounds: it must be at most the burst, 5
leaky_queue: { rate: 1/s, burst: 5, delay: 5, nodelay: true }
    4:73: strategies.a.limits[0].leaky_queue.delay: cannot stand beside `nodelay`, which delays nothing; remove one of them
token_bucket: { rate: 1/s, max_cost: 5 }
    4:64: strategies.a.limits[0].token_bucket.max_cost: is for calls that pay afterwards; add `charge_after: true`, or remove `max_cost`
sliding_log: { limit: 1, window: 1s, min_gap: 1ms, hold: true }
    4:88: strategies.a.limits[0].sliding_log.hold: cannot stand beside `count_denied` or `min_gap`: reservations are those of a plain log
sliding_log: { limit: 5, window: 1s, hold: true, max_held: 1001 }
    4:96: strategies.a.limits[0].sliding_log.max_held: 1001 is out of bounds: it must be from 1 to 1000
sliding_log: { limit: 5, window: 1s, max_held: 5 }
    4:74: strategies.a.limits[0].sliding_log.max_held: needs `hold: true`; it bounds how many reservations lie ahead
token_bucket: { rate: 1/s }, max_debt: much
    4:76: strategies.a.limits[0].max_debt: "much" is not a whole number of at least 0, or `unlimited`
token_bucket: { rate: 1/s }, max_debt: 4503599627370496
    4:76: strategies.a.limits[0].max_debt: 4503599627370496 is out of bounds: it must be below 2^52, or `unlimited`
"#,
    );
    refused(&[("leaky_bucket: { rate: 1/s, queue: 5, max_delay: 1s }", &queues)], limit);
}

#[test]
fn algorithms_that_are_taken() {
    let second = Micros::from_secs(1);
    let minute = Micros::from_secs(60);
    let per_second = |count| Rate { count, period: second };
    let bucket = |burst, count, period| Algorithm::bucket(burst, Rate { count, period });
    let window = |limit, count_denied| Algorithm::fixed_window(limit, second, false, count_denied);
    let calendar = Algorithm::calendar_window;
    let warm_up = |cold, most| Algorithm::warm_up(per_second(10), Micros::from_secs(4), cold, most);
    let month = Micros::from_secs(30 * 86_400);
    for (text, expected) in [
        ("uniform: { interval: 1s }", Algorithm::uniform(second)),
        ("token_bucket: { rate: 30/1m }", bucket(30, 30, minute)),
        ("token_bucket: { rate: 1_000/m, burst: 5 }", bucket(5, 1000, minute)),
        ("token_bucket: { rate: 30/500ms500us }", bucket(30, 30, Micros(500_500))),
        ("gcra: { rate: 5/s, burst: 7 }", bucket(7, 5, second)),
        ("leaky_bucket: { rate: 5/s }", bucket(5, 5, second)),
        ("leaky_queue: { rate: 10/1s, burst: 20 }", Algorithm::leaky_queue(20, per_second(10), 0)),
        ("leaky_queue: { rate: 10/1s, burst: 20, delay: 8 }", Algorithm::leaky_queue(20, per_second(10), 8)),
        (
            "leaky_queue: { rate: 10/1s, burst: 20, nodelay: true }",
            Algorithm::leaky_queue(20, per_second(10), 20),
        ),
        ("token_bucket: { rate: 5/s, charge_after: true }", Algorithm::charge_after(5, per_second(5), 50)),
        (
            "token_bucket: { rate: 5/s, burst: 7, charge_after: true, max_cost: 9 }",
            Algorithm::charge_after(7, per_second(5), 9),
        ),
        ("fixed_window: { limit: 5, window: 1s }", window(5, false)),
        ("fixed_window: { limit: 5, window: 1s, count_denied: true }", window(5, true)),
        (
            "interval_refill: { capacity: 5, refill: 1, period: 1s }",
            Algorithm::interval_refill(5, 1, second, false),
        ),
        ("fixed_window: { limit: 5, window: 1m, spread: true }", Algorithm::spread_window(5, minute, false)),
        ("fixed_window: { limit: 5, window: 1s, spread: false }", window(5, false)),
        ("fixed_window: { limit: 5, calendar: day }", calendar(5, Calendar::Day, 0, false)),
        (
            "fixed_window: { limit: 5, calendar: month, offset: +14:00 }",
            calendar(5, Calendar::Month, 840, false),
        ),
        (
            "fixed_window: { limit: 5, calendar: month, offset: \"-05:30\", count_denied: true }",
            calendar(5, Calendar::Month, -330, true),
        ),
        (
            "sliding_window: { limit: 1_000_000_000, window: 30d }",
            Algorithm::sliding_window(1_000_000_000, month),
        ),
        (
            "bucketed_window: { limit: 5, window: 1m, buckets: 6 }",
            Algorithm::bucketed_window(5, minute, 6, true),
        ),
        (
            "bucketed_window: { limit: 5, window: 1m, accuracy: 0.1 }",
            Algorithm::bucketed_window(5, minute, 6, true),
        ),
        (
            "bucketed_window: { limit: 5, window: 1m, accuracy: 0.75 }",
            Algorithm::parted_window(5, minute, Micros(1_333_334), true),
        ),
        (
            "bucketed_window: { limit: 5, window: 1m, buckets: 6, strict: false }",
            Algorithm::bucketed_window(5, minute, 6, false),
        ),
        ("warm_up: { rate: 10/1s, period: 4s }", warm_up(3, None)),
        ("warm_up: { rate: 10/1s, period: 4s, cold_factor: 2, max_cost: 7 }", warm_up(2, Some(7))),
        ("sliding_log: { limit: 5, window: 1s, hold: true }", Algorithm::held_log(5, second, 100)),
        ("sliding_log: { limit: 5, window: 1s, hold: true, max_held: 7 }", Algorithm::held_log(5, second, 7)),
        ("sliding_log: { limit: 10_000, window: 1s }", Algorithm::sliding_log(10_000, second)),
        (
            "sliding_log: { limit: 5, window: 1m, count_denied: true, min_gap: 2s }",
            Algorithm::strict_log(5, minute, true, Micros::from_secs(2)),
        ),
    ] {
        assert_eq!(algorithm(text), configured(expected.unwrap()), "{text}");
    }
}

/// A limit of 0 is a way to say no, not a mistake.
#[test]
fn a_limit_of_nothing_is_legal() {
    for text in [
        "token_bucket: { rate: 1/s, burst: 0 }",
        "fixed_window: { limit: 0, window: 1s }",
        "interval_refill: { capacity: 0, refill: 1, period: 1s }",
        "sliding_log: { limit: 0, window: 1s }",
        "sliding_window: { limit: 0, window: 1s }",
        "bucketed_window: { limit: 0, window: 1s, buckets: 2 }",
    ] {
        assert_eq!(algorithm(text).limit(), 0, "{text}");
    }
}
