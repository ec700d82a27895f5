//! Random limits, and random steps that often hit edges: a call at the exact microsecond that an earlier answer
//! named, or one before or after it, with a cost equal to `remaining`.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestRunner};
use weir_core::algorithm::{Algorithm, Calendar, DEFAULT_MAX_HELD, MAX_LIMITS, Op, Rate};
use weir_units::{CEILING, LONGEST_SPAN, Micros};

/// The same cases in every run, so that a build is as green as its sources; `PROPTEST_RNG_SEED` and
/// `PROPTEST_CASES` look elsewhere. What has failed once is tried first from then on.
pub fn config() -> Config {
    let persistence = FileFailurePersistence::WithSource("proptest-regressions");
    let mut config = Config {
        failure_persistence: Some(Box::new(persistence)),
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(2024);
    }
    config
}

/// Tells one `share`th of the usual number of random stories, and prints how many decisions they had. One that differs is
/// shrunk, and kept beside `file`.
pub fn tell<S: Strategy>(
    file: &'static str,
    share: u32,
    stories: &S,
    tell: impl FnMut(S::Value) -> Result<usize, TestCaseError>,
) {
    let mut config = Config { source_file: Some(file), ..config() };
    config.cases /= share;
    let (tell, decisions) = (RefCell::new(tell), Cell::new(0));
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(stories, |story| {
        let told = tell.borrow_mut()(story)?;
        decisions.set(decisions.get() + told);
        Ok(())
    });
    println!("{} decisions", decisions.get());
    outcome.unwrap_or_else(|difference| panic!("{difference}\n{runner}"));
}

/// One call, and how long after the one before.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub pause: Pause,
    pub op: Op,
    pub cost: Cost,
}

/// The time until the next step.
#[derive(Debug, Clone, Copy)]
pub enum Pause {
    Exactly(u64),
    /// Until the last answer's `retry_after`, or the microsecond before or after.
    Retry(i8),
    /// Until the last answer's `reset_after`, or the microsecond before or after.
    Reset(i8),
    /// So many 65536th of the last answer's `reset_after`.
    Share(u16),
}

/// The cost of the next step.
#[derive(Debug, Clone, Copy)]
pub enum Cost {
    Exactly(u64),
    /// The `remaining` of the last answer, or one less or more.
    Remaining(i8),
    /// The limit, or one less or more.
    Limit(i8),
}

/// A limit of any engine: mostly small enough that a short trace meets all its edges. Boxed, because the
/// type of so many alternatives takes more stack than a test's thread has.
pub fn limit() -> impl Strategy<Value = Algorithm> {
    prop_oneof![bucket(), window(), interval(), log(), sliding(), slots(), sparse()].boxed()
}

/// The limits of one decision.
pub fn limits() -> impl Strategy<Value = Vec<Algorithm>> {
    prop_oneof![3 => limit().prop_map(|one| vec![one]), 2 => prop::collection::vec(limit(), 1..=4)]
}

/// As many limits as a decision may have.
pub fn many_limits() -> impl Strategy<Value = Vec<Algorithm>> {
    prop::collection::vec(limit(), 2..=MAX_LIMITS)
}

pub fn bucket() -> impl Strategy<Value = Algorithm> {
    (amount(), amount(), span()).prop_filter_map("not a bucket", |(burst, count, period)| {
        Algorithm::bucket(burst, Rate { count, period }).ok()
    })
}

/// Of any kind: a meter, a queue, or one that is paid afterwards, with a bound of debts or without.
pub fn any_bucket() -> impl Strategy<Value = Algorithm> {
    let of = |(kind, burst, count, period, other)| {
        let rate = Rate { count, period };
        match kind {
            0 => Algorithm::leaky_queue(burst, rate, other).ok(),
            1 => Algorithm::charge_after(burst, rate, other).ok(),
            _ => Algorithm::bucket(burst, rate).ok(),
        }
    };
    let debt = prop_oneof![2 => Just(None), 1 => amount().prop_map(Some)];
    let numbers = (0..3_u8, amount(), amount(), span(), amount()).prop_filter_map("not a bucket", of);
    (numbers, debt).prop_map(|(bucket, debt)| bucket.with_max_debt(debt)).boxed()
}

pub fn warm_up() -> impl Strategy<Value = Algorithm> {
    let factor = prop_oneof![Just(1_u64), Just(3), 1..=1000_u64];
    let max_cost = prop_oneof![Just(None), amount().prop_map(Some)];
    (amount(), span(), span(), factor, max_cost)
        .prop_filter_map("not a warm-up", |(count, period, warm_up, factor, max_cost)| {
            Algorithm::warm_up(Rate { count, period }, warm_up, factor, max_cost).ok()
        })
        .boxed()
}

pub fn window() -> impl Strategy<Value = Algorithm> {
    prop_oneof![4 => fixed_window(), 1 => calendar_window(), 2 => spread_window()].boxed()
}

pub fn spread_window() -> impl Strategy<Value = Algorithm> {
    (amount(), span(), prop::bool::weighted(0.3))
        .prop_filter_map("not a window", |(limit, span, count_denied)| {
            Algorithm::spread_window(limit, span, count_denied).ok()
        })
}

pub fn calendar_window() -> impl Strategy<Value = Algorithm> {
    let calendar = prop::sample::select(vec![Calendar::Day, Calendar::Month]);
    (amount(), calendar, -1439..1440_i64, prop::bool::weighted(0.3)).prop_filter_map(
        "not a window",
        |(limit, calendar, offset, count_denied)| {
            Algorithm::calendar_window(limit, calendar, offset, count_denied).ok()
        },
    )
}

fn fixed_window() -> impl Strategy<Value = Algorithm> {
    (amount(), span(), any::<bool>(), prop::bool::weighted(0.3)).prop_filter_map(
        "not a window",
        |(limit, span, anchored, count_denied)| {
            Algorithm::fixed_window(limit, span, anchored, count_denied).ok()
        },
    )
}

pub fn interval() -> impl Strategy<Value = Algorithm> {
    (amount(), amount(), span(), any::<bool>()).prop_filter_map(
        "not an interval refill",
        |(capacity, refill, period, aligned)| {
            Algorithm::interval_refill(capacity, refill, period, aligned).ok()
        },
    )
}

pub fn log() -> impl Strategy<Value = Algorithm> {
    let plain = (amount(), span())
        .prop_filter_map("not a log", |(limit, span)| Algorithm::sliding_log(limit, span).ok());
    prop_oneof![plain, strict_log()].boxed()
}

pub fn held_log() -> impl Strategy<Value = Algorithm> {
    let max_held = prop_oneof![1..=3_u64, Just(DEFAULT_MAX_HELD)];
    (amount(), span(), max_held)
        .prop_filter_map("not a log", |(limit, span, held)| Algorithm::held_log(limit, span, held).ok())
        .boxed()
}

/// With a gap that is often a good part of the window, and denied attempts counted more often than not.
pub fn strict_log() -> impl Strategy<Value = Algorithm> {
    (amount(), span(), prop::bool::weighted(0.7), 0..=8_u64).prop_filter_map(
        "not a strict log",
        |(limit, span, count_denied, eighths)| {
            Algorithm::strict_log(limit, span, count_denied, Micros(span.0 / 8 * eighths)).ok()
        },
    )
}

pub fn sliding() -> impl Strategy<Value = Algorithm> {
    (amount(), span())
        .prop_filter_map("not a sliding window", |(limit, span)| Algorithm::sliding_window(limit, span).ok())
}

pub fn slots() -> impl Strategy<Value = Algorithm> {
    parted((1..=8_u64).boxed())
}

/// Of so many parts that Redis keeps only those with hits.
pub fn sparse() -> impl Strategy<Value = Algorithm> {
    parted(prop_oneof![4 => 362..=700_u64, 1 => 3000..=3599_u64].boxed())
}

/// Windows of about so many parts, of which the last one is shorter now and then.
fn parted(parts: BoxedStrategy<u64>) -> impl Strategy<Value = Algorithm> {
    (amount(), span(), parts, any::<bool>(), 0..=2_u64).prop_filter_map(
        "not a bucketed window",
        |(limit, span, parts, strict, uneven)| {
            let window = Micros(span.0.next_multiple_of(parts));
            let width = Micros(window.0 / parts + if uneven == 0 { 1 } else { 0 });
            Algorithm::parted_window(limit, window, width, strict).ok()
        },
    )
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..=6_u64, 3 => 0..=1000_u64, 1 => 0..=1_000_000_000_u64, 1 => 0..=CEILING]
}

fn span() -> impl Strategy<Value = Micros> {
    prop_oneof![
        6 => 1..=20_u64,
        3 => 1..=5_000_u64,
        2 => prop::sample::select(vec![1_000_000, 60_000_000, 86_400_000_000]),
        1 => 1..=LONGEST_SPAN.0,
    ]
    .prop_map(Micros)
}

/// Steps with every operation.
pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(op()), 1..=most)
}

/// Steps that only charge.
pub fn charges(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(Just(Op::Charge)), 1..=most)
}

pub fn step(op: impl Strategy<Value = Op>) -> impl Strategy<Value = Step> {
    (pause(), op, cost()).prop_map(|(pause, op, cost)| Step { pause, op, cost })
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => Just(Op::Charge),
        2 => Just(Op::Peek),
        2 => Just(Op::Force),
        1 => Just(Op::Refund),
        1 => Just(Op::AtMost),
        2 => prop_oneof![0..=50_u64, 0..=CEILING].prop_map(|max| Op::Reserve { max_wait: Micros(max) }),
        1 => prop::bool::weighted(0.2).prop_map(|reset| if reset { Op::Reset } else { Op::Charge }),
    ]
}

fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        3 => Just(Pause::Exactly(0)),
        4 => (0..=20_u64).prop_map(Pause::Exactly),
        1 => (0..=10_000_000_000_u64).prop_map(Pause::Exactly),
        3 => (-1..=1_i8).prop_map(Pause::Retry),
        2 => (-1..=1_i8).prop_map(Pause::Reset),
        2 => any::<u16>().prop_map(Pause::Share),
    ]
}

pub fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        6 => Just(Cost::Exactly(1)),
        3 => (0..=6_u64).prop_map(Cost::Exactly),
        1 => any::<u64>().prop_map(Cost::Exactly),
        3 => (-1..=1_i8).prop_map(Cost::Remaining),
        2 => (-1..=1_i8).prop_map(Cost::Limit),
    ]
}

/// `op`, or a charge where these limits do not have it.
pub fn supported(op: Op, limits: &[Algorithm]) -> Op {
    match op {
        Op::Reserve { .. } if limits.len() > 1 || !limits.iter().all(Algorithm::reserves) => Op::Charge,
        Op::Cancel if limits.len() > 1 || !limits.iter().all(Algorithm::cancels) => Op::Charge,
        Op::Refund | Op::Force if !limits.iter().all(Algorithm::is_adjustable) => Op::Charge,
        Op::Refund | Op::AtMost if limits.iter().any(Algorithm::counts_denied) => Op::Charge,
        op => op,
    }
}
