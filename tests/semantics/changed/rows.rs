//! The rows: worked out by hand from what ARCHITECTURE.md says of a changed configuration.

/// Charges under `old`, and the answer of `new`. Times in milliseconds since a full minute.
pub(super) struct Row {
    pub(super) old: &'static str,
    /// Times and costs of the charges.
    pub(super) spent: &'static [(u64, u64)],
    pub(super) new: &'static str,
    /// The time of the question.
    pub(super) at: u64,
    pub(super) remaining: u64,
    /// Until one more than what remains would pass.
    pub(super) retry: u64,
    pub(super) reset: u64,
}

/// The times in a row for a cost above the limit.
pub(super) const NEVER: u64 = u64::MAX;

const fn row(
    (old, spent): (&'static str, &'static [(u64, u64)]),
    new: &'static str,
    at: u64,
    (remaining, retry, reset): (u64, u64, u64),
) -> Row {
    Row { old, spent, new, at, remaining, retry, reset }
}

type Old = (&'static str, &'static [(u64, u64)]);

const BUCKET: Old = ("token_bucket: { rate: 10/10s, burst: 10 }", &[(0, 8)]);
const UNIFORM: Old = ("uniform: { interval: 10s }", &[(0, 1)]);
const WINDOW: Old = ("fixed_window: { limit: 10, window: 10s }", &[(2_000, 8)]);
const ANCHORED: Old = ("fixed_window: { limit: 10, window: 10s, anchored: true }", &[(2_000, 8)]);
const REFILL: Old = ("interval_refill: { capacity: 10, refill: 2, period: 10s }", &[(0, 8)]);
const LOG: Old = ("sliding_log: { limit: 10, window: 10s }", &[(0, 4), (3_000, 4)]);
const ATTEMPTS: Old =
    ("sliding_log: { limit: 3, window: 10s, count_denied: true }", &[(0, 1), (0, 1), (0, 1), (1_000, 1)]);
const SLIDING: Old = ("sliding_window: { limit: 10, window: 10s }", &[(2_000, 8)]);
const SLOTS: Old = ("bucketed_window: { limit: 10, window: 10s, buckets: 5 }", &[(2_000, 8)]);

pub(super) const ROWS: &[Row] = &[
    // A bucket: tokens that were taken stay taken, and come back at the new rate.
    row(BUCKET, "token_bucket: { rate: 5/10s, burst: 10 }", 0, (2, 2_000, 16_000)),
    row(BUCKET, "token_bucket: { rate: 100/10s, burst: 10 }", 0, (2, 100, 800)),
    row(BUCKET, "token_bucket: { rate: 10/10s, burst: 5 }", 0, (0, 4_000, 8_000)),
    row(BUCKET, "token_bucket: { rate: 10/10s, burst: 20 }", 0, (12, 1_000, 8_000)),
    row(BUCKET, "token_bucket: { rate: 5/10s, burst: 3 }", 4_000, (0, 8_000, 12_000)),
    row(BUCKET, "uniform: { interval: 3s }", 0, (0, 24_000, 24_000)),
    row(UNIFORM, "uniform: { interval: 2s }", 0, (0, 2_000, 2_000)),
    row(UNIFORM, "uniform: { interval: 60s }", 0, (0, 60_000, 60_000)),
    row(UNIFORM, "token_bucket: { rate: 10/10s, burst: 10 }", 0, (9, 1_000, 1_000)),
    // A fixed window: it ends as it began.
    row(WINDOW, "fixed_window: { limit: 5, window: 10s }", 2_000, (0, 8_000, 8_000)),
    row(WINDOW, "fixed_window: { limit: 20, window: 10s }", 2_000, (12, 8_000, 8_000)),
    row(WINDOW, "fixed_window: { limit: 10, window: 60s }", 2_000, (2, 8_000, 8_000)),
    row(WINDOW, "fixed_window: { limit: 10, window: 1s }", 2_000, (2, 8_000, 8_000)),
    row(WINDOW, "fixed_window: { limit: 5, window: 1s }", 9_000, (0, 1_000, 1_000)),
    row(WINDOW, "fixed_window: { limit: 10, calendar: day }", 2_000, (2, 8_000, 8_000)),
    row(WINDOW, "fixed_window: { limit: 10, window: 10s, anchored: true }", 2_000, (2, 8_000, 8_000)),
    row(WINDOW, "fixed_window: { limit: 10, window: 10s, spread: true }", 2_000, (2, 8_000, 8_000)),
    row(ANCHORED, "fixed_window: { limit: 5, window: 10s }", 2_000, (0, 10_000, 10_000)),
    row(ANCHORED, "fixed_window: { limit: 5, calendar: month }", 2_000, (0, 10_000, 10_000)),
    // An interval refill: what is spent is spent, and comes back as is said now.
    row(REFILL, "interval_refill: { capacity: 5, refill: 2, period: 10s }", 0, (0, 20_000, 40_000)),
    row(REFILL, "interval_refill: { capacity: 20, refill: 2, period: 10s }", 0, (12, 10_000, 40_000)),
    row(REFILL, "interval_refill: { capacity: 10, refill: 2, period: 1s }", 0, (2, 1_000, 4_000)),
    row(REFILL, "interval_refill: { capacity: 10, refill: 2, period: 100s }", 0, (2, 100_000, 400_000)),
    row(REFILL, "interval_refill: { capacity: 10, refill: 8, period: 10s }", 0, (2, 10_000, 10_000)),
    row(REFILL, "interval_refill: { capacity: 4, refill: 1, period: 10s }", 0, (0, 50_000, 80_000)),
    // A log: it has times, and every window can be counted by them.
    row(LOG, "sliding_log: { limit: 5, window: 10s }", 5_000, (0, 5_000, 8_000)),
    row(LOG, "sliding_log: { limit: 20, window: 10s }", 5_000, (12, 5_000, 8_000)),
    row(LOG, "sliding_log: { limit: 1, window: 10s }", 5_000, (0, 8_000, 8_000)),
    row(LOG, "sliding_log: { limit: 10, window: 4s }", 5_000, (6, 2_000, 2_000)),
    row(LOG, "sliding_log: { limit: 10, window: 100s }", 5_000, (2, 95_000, 98_000)),
    row(LOG, "sliding_log: { limit: 10, window: 10s, min_gap: 4s }", 5_000, (2, 5_000, 8_000)),
    row(ATTEMPTS, "sliding_log: { limit: 5, window: 10s }", 1_000, (1, 9_000, 10_000)),
    row(ATTEMPTS, "sliding_log: { limit: 2, window: 10s }", 1_000, (0, 9_000, 10_000)),
    // Two windows: their hits count in full until the old limit would have been full again.
    row(SLIDING, "sliding_window: { limit: 5, window: 10s }", 2_000, (0, 13_000, 18_000)),
    row(SLIDING, "sliding_window: { limit: 20, window: 10s }", 2_000, (12, 9_250, 18_000)),
    row(SLIDING, "sliding_window: { limit: 10, window: 60s }", 2_000, (2, 18_000, 18_000)),
    row(SLIDING, "sliding_window: { limit: 10, window: 1s }", 2_000, (2, 18_000, 18_000)),
    row(SLIDING, "sliding_window: { limit: 5, window: 60s }", 15_000, (0, 5_000, 5_000)),
    // Buckets of a window: the same.
    row(SLOTS, "bucketed_window: { limit: 5, window: 10s, buckets: 5 }", 2_000, (0, 12_000, 12_000)),
    row(SLOTS, "bucketed_window: { limit: 20, window: 10s, buckets: 5 }", 2_000, (12, 12_000, 12_000)),
    row(SLOTS, "bucketed_window: { limit: 10, window: 20s, buckets: 5 }", 2_000, (2, 12_000, 12_000)),
    row(SLOTS, "bucketed_window: { limit: 10, window: 1s, buckets: 5 }", 2_000, (2, 12_000, 12_000)),
    row(SLOTS, "bucketed_window: { limit: 10, window: 10s, buckets: 10 }", 2_000, (2, 12_000, 12_000)),
    row(
        SLOTS,
        "bucketed_window: { limit: 5, window: 10s, buckets: 5, strict: false }",
        13_000,
        (0, 1_000, 1_000),
    ),
    // A limit of nothing.
    row(BUCKET, "token_bucket: { rate: 10/10s, burst: 0 }", 0, (0, NEVER, NEVER)),
    row(WINDOW, "fixed_window: { limit: 0, window: 10s }", 2_000, (0, NEVER, NEVER)),
    row(REFILL, "interval_refill: { capacity: 0, refill: 2, period: 10s }", 0, (0, NEVER, NEVER)),
    row(LOG, "sliding_log: { limit: 0, window: 10s }", 5_000, (0, NEVER, NEVER)),
    row(SLIDING, "sliding_window: { limit: 0, window: 10s }", 2_000, (0, NEVER, NEVER)),
    row(SLOTS, "bucketed_window: { limit: 0, window: 10s, buckets: 5 }", 2_000, (0, NEVER, NEVER)),
    // Another engine: a key of its own, and nothing of the old state.
    row(BUCKET, "fixed_window: { limit: 10, window: 10s }", 0, (10, NEVER, NEVER)),
    row(LOG, "sliding_window: { limit: 10, window: 10s }", 5_000, (10, NEVER, NEVER)),
];
