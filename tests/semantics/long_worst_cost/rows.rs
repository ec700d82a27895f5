//! The states and calls of the table.

use weir_core::algorithm::{Algorithm, DEFAULT_MAX_HELD, MAX_ENTRIES, MAX_LIMITS, MOST_MAX_HELD, Op, Rate};
use weir_units::Micros;

const HOUR: Micros = Micros::from_secs(3600);

/// One call on one state.
pub struct Row {
    pub state: String,
    pub call: &'static str,
    pub limits: Vec<Algorithm>,
    /// Pause, operation and cost of each call that makes the state.
    pub before: Vec<(u64, Op, u64)>,
    /// Time by which the clock moves before the call, and by which it goes back.
    pub pause: u64,
    pub back: u64,
    pub op: Op,
    pub cost: u64,
    /// True if the cost has a bound that the test asserts.
    pub is_bounded: bool,
}

impl Row {
    fn new(state: impl ToString, limits: Vec<Algorithm>, before: Vec<(u64, Op, u64)>) -> Self {
        let (state, call) = (state.to_string(), "admitted");
        Self { state, call, limits, before, pause: 0, back: 0, op: Op::Charge, cost: 1, is_bounded: false }
    }

    fn call(self, call: &'static str, op: Op, cost: u64) -> Self {
        Self { call, op, cost, ..self }
    }

    fn after(self, pause: u64) -> Self {
        Self { pause, ..self }
    }

    fn back(self, back: u64) -> Self {
        Self { back, ..self }
    }
}

pub fn rows() -> Vec<Row> {
    let mut rows = constant();
    rows.extend(slots());
    rows.extend(logs());
    for max_held in [DEFAULT_MAX_HELD, MOST_MAX_HELD] {
        rows.extend(held(max_held));
    }
    rows
}

/// Engines whose states have a fixed size.
fn constant() -> Vec<Row> {
    let rate = Rate { count: 1000, period: Micros::from_secs(1) };
    let once = || vec![(0, Op::Charge, 1)];
    [
        ("token_bucket", Algorithm::bucket(1000, rate)),
        ("token_bucket with charge_after", Algorithm::charge_after(1000, rate, 10)),
        ("leaky_queue", Algorithm::leaky_queue(1000, rate, 0)),
        ("warm_up", Algorithm::warm_up(rate, Micros::from_secs(10), 3, None)),
        ("fixed_window", Algorithm::fixed_window(1000, HOUR, false, false)),
        ("interval_refill", Algorithm::interval_refill(1000, 10, HOUR, false)),
        ("sliding_window", Algorithm::sliding_window(1000, HOUR)),
    ]
    .into_iter()
    .map(|(name, limit)| Row::new(name, vec![limit.unwrap()], once()).after(1_000_000))
    .collect()
}

/// Windows in parts, each of which was hit.
fn slots() -> Vec<Row> {
    let window = |buckets: u64, limit| {
        let width = 1_000_000;
        let window = Algorithm::bucketed_window(limit, Micros(buckets * width), buckets, true).unwrap();
        let hits = vec![(width, Op::Charge, 1); buckets as usize];
        (window, hits)
    };
    let mut rows = Vec::new();
    for (buckets, name) in [(360, "bucketed_window of 360"), (3600, "bucketed_window of 3,600")] {
        let (window, hits) = window(buckets, 3600);
        let row =
            |call, op, cost| Row::new(name, vec![window], hits.clone()).after(1_000_000).call(call, op, cost);
        rows.push(row("admitted", Op::Charge, 1));
        rows.push(row("denied", Op::Charge, 3500));
        rows.push(row("Count of half", Op::Count { parts: buckets / 2 }, 0));
        rows.push(row("Refund of all", Op::Refund, 3600));
    }
    rows
}

/// Logs of as many entries as there may be.
fn logs() -> Vec<Row> {
    let (plain, denied) = (
        Algorithm::sliding_log(MAX_ENTRIES, HOUR).unwrap(),
        Algorithm::strict_log(MAX_ENTRIES - 1, HOUR, true, Micros(1)).unwrap(),
    );
    let full = || vec![(1000, Op::Charge, 1); MAX_ENTRIES as usize];
    let nearly = || vec![(1000, Op::Charge, 1); MAX_ENTRIES as usize - 1];
    let name = "sliding_log of 10,000 entries";
    let row = |call, op, cost| Row::new(name, vec![plain], full()).call(call, op, cost);
    let all = vec![plain; MAX_LIMITS];
    vec![
        Row::new(name, vec![plain], nearly()),
        row("denied", Op::Charge, 5000),
        row("admitted, half of the entries expired", Op::Charge, 1).after(HOUR.0 - 5_000_000),
        row("Refund of 1", Op::Refund, 1),
        row("Refund of all but 1", Op::Refund, MAX_ENTRIES - 1),
        row("admitted, Redis' clock stepped back", Op::Charge, 1).back(2 * HOUR.0),
        Row::new("sliding_log of 9,999 with `count_denied`", vec![denied], full()).call(
            "denied",
            Op::Charge,
            1,
        ),
        Row::new(format!("{MAX_LIMITS} times sliding_log of 10,000 entries"), all, full()).call(
            "denied",
            Op::Charge,
            5000,
        ),
    ]
}

/// Logs that are full, with as many reservations ahead as there may be.
fn held(max_held: u64) -> Vec<Row> {
    let limit = Algorithm::held_log(MAX_ENTRIES, HOUR, max_held).unwrap();
    let reserve = Op::Reserve { max_wait: HOUR };
    let ahead = |held: u64| {
        let mut calls = vec![(1000, Op::Charge, 1); MAX_ENTRIES as usize];
        calls.extend((0..held).map(|_| (0, reserve, 1)));
        calls
    };
    let name = format!("sliding_log of 10,000 entries with `hold`, {max_held} reserved");
    let row = |call, op, cost| Row::new(&name, vec![limit], ahead(max_held)).call(call, op, cost);
    let last =
        Row::new(&name, vec![limit], ahead(max_held - 1)).call("the last Reserve that fits", reserve, 1);
    let due = HOUR.0 - 5_000_000;
    let rows = vec![
        last,
        row("Reserve refused", reserve, 1),
        row("ShouldAllow denied", Op::Charge, 1),
        row("admitted, all of them due", Op::Charge, 1).after(due),
        row("Refund of 1, all of them due", Op::Refund, 1).after(due),
        row("Refund of all but 1", Op::Refund, MAX_ENTRIES - 1),
        row("Reset", Op::Reset, 0),
    ];
    // The call that finds all of them due enters them into the log, once for so many calls. It is printed only.
    let is_bounded = |row: &Row| max_held == DEFAULT_MAX_HELD && row.pause == 0;
    rows.into_iter().map(|row| Row { is_bounded: is_bounded(&row), ..row }).collect()
}
