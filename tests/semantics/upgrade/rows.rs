//! Rows of limits: each a short story of one strategy.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::strategy::{FailurePolicy, Field, Strategy};
use weir_units::Micros;

use crate::support::rules::strategy;

/// After so many microseconds, what is done with which cost.
pub(super) type Step = (u64, Op, u64);

pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) strategy: Arc<Strategy>,
    /// True if charges and debits have an id.
    pub(super) has_ids: bool,
    /// Steps before the states are written down.
    pub(super) before: Vec<Step>,
    /// Steps that are answered from these states.
    pub(super) after: Vec<Step>,
}

impl Row {
    /// The id of an operation, if it has one.
    pub(super) fn id_of(&self, op: Op) -> &'static str {
        let once = matches!(op, Op::Refund | Op::Reserve { .. } | Op::Cancel)
            || self.has_ids && matches!(op, Op::Charge | Op::AtMost | Op::Force);
        if once { "once" } else { "" }
    }
}

const SECOND: u64 = 1_000_000;

/// All rows.
pub(super) fn all_rows() -> Vec<Row> {
    [rows(), rows_of_shaping(), rows_of_many_buckets(), rows_of_ids()].into_iter().flatten().collect()
}

fn rows() -> Vec<Row> {
    let (ten, span) = (10, Micros(10 * SECOND));
    let kinds = [
        ("bucket", Algorithm::bucket(ten, Rate { count: 3, period: span })),
        ("uniform", Algorithm::uniform(Micros(4 * SECOND))),
        ("window", Algorithm::fixed_window(ten, span, false, false)),
        ("window anchored", Algorithm::fixed_window(ten, span, true, false)),
        ("window counting", Algorithm::fixed_window(ten, span, true, true)),
        ("window spread", Algorithm::spread_window(ten, span, false)),
        ("interval", Algorithm::interval_refill(ten, 3, span, false)),
        ("interval aligned", Algorithm::interval_refill(ten, 3, span, true)),
        ("log", Algorithm::sliding_log(ten, span)),
        ("log counting", Algorithm::strict_log(ten, span, true, Micros(SECOND))),
        ("sliding", Algorithm::sliding_window(ten, span)),
        ("slots", Algorithm::bucketed_window(ten, span, 5, true)),
        ("slots early", Algorithm::bucketed_window(ten, span, 5, false)),
    ];
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let mut rows: Vec<Row> =
        kinds.into_iter().map(|(name, algorithm)| row(name, &[("each", both, algorithm.unwrap())])).collect();
    let bucket = Algorithm::bucket(ten, Rate { count: 1, period: Micros(SECOND) }).unwrap();
    let log = Algorithm::sliding_log(100, span).unwrap();
    let mut two = row("two limits", &[("all", &[Field::Resource], log), ("each", both, bucket)]);
    // The id of a refund is a key as well.
    two.before.push((SECOND, Op::Refund, 1));
    two.after.push((SECOND, Op::Refund, 1));
    rows.push(two);
    rows
}

/// A bucketed window whose parts are stored sparsely.
fn rows_of_many_buckets() -> Vec<Row> {
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let algorithm = Algorithm::bucketed_window(10, Micros(10 * SECOND), 400, true).unwrap();
    vec![row("sparse", &[("each", both, algorithm)])]
}

/// Limits that shape traffic, and what is remembered of decisions under ids.
fn rows_of_shaping() -> Vec<Row> {
    let rate = Rate { count: 1, period: Micros(SECOND) };
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let kinds = [
        ("leaky queue", Algorithm::leaky_queue(9, rate, 2)),
        ("charge after", Algorithm::charge_after(4, rate, 10)),
        ("warm-up", Algorithm::warm_up(rate, Micros(10 * SECOND), 3, Some(10))),
        ("reserved", Algorithm::bucket(2, rate)),
        ("reserved interval", Algorithm::interval_refill(2, 2, Micros(2 * SECOND), true)),
        ("held log", Algorithm::held_log(2, Micros(2 * SECOND), 100)),
    ];
    let mut rows: Vec<Row> =
        kinds.into_iter().map(|(name, algorithm)| row(name, &[("each", both, algorithm.unwrap())])).collect();
    let max_wait = Micros(20 * SECOND);
    for row in rows.iter_mut().filter(|row| row.strategy.algorithms()[0].cancels()) {
        // A call that is held, is asked for again, and then cancelled.
        row.before = vec![(0, Op::Charge, 2), (SECOND / 4, Op::Reserve { max_wait }, 2)];
        row.after = vec![(SECOND / 2, Op::Reserve { max_wait }, 2), (1, Op::Cancel, 0), (1, Op::Peek, 1)];
    }
    rows
}

/// The records of charges and debits under an id. The same call is answered as it was decided, and another cost is refused.
fn rows_of_ids() -> Vec<Row> {
    let both: &[Field] = &[Field::Resource, Field::Consumer];
    let rate = Rate { count: 1, period: Micros(SECOND) };
    let bucket = || Algorithm::bucket(10, rate).unwrap();
    let window = Algorithm::fixed_window(20, Micros(60 * SECOND), false, false).unwrap();
    let of = |name, limits: &[(&str, &[Field], Algorithm)], op, cost, other| {
        // Two seconds later, when some of the cost has come back.
        let after = vec![(2 * SECOND, op, cost), (0, op, other), (0, Op::Peek, 1), (SECOND, op, cost)];
        Row { has_ids: true, before: vec![(SECOND / 2, op, cost)], after, ..row(name, limits) }
    };
    let one = [("each", both, bucket())];
    let two = [("each", both, bucket()), ("all", &[Field::Resource][..], window)];
    let paced = [("each", both, Algorithm::leaky_queue(9, rate, 0).unwrap())];
    vec![
        of("charge under an id", &one, Op::Charge, 4, 5),
        of("charge of two limits under an id", &two, Op::Charge, 4, 5),
        of("paced charge under an id", &paced, Op::Charge, 4, 5),
        of("partial grant under an id", &two, Op::AtMost, 30, 31),
        of("debit under an id", &one, Op::Force, 14, 15),
        of("debit of two limits under an id", &two, Op::Force, 14, 15),
    ]
}

fn row(name: &'static str, limits: &[(&str, &[Field], Algorithm)]) -> Row {
    let one = Arc::new(strategy("fixture", limits, FailurePolicy::Error));
    let before = vec![(0, Op::Charge, 3), (SECOND + 1, Op::Charge, 2), (9 * SECOND, Op::Charge, 1)];
    let after = vec![
        (0, Op::Peek, 1),
        (500_003, Op::Charge, 4),
        (0, Op::Charge, 9),
        (3 * SECOND, Op::Charge, 1),
        (7 * SECOND, Op::Peek, 10),
    ];
    Row { name, strategy: one, has_ids: false, before, after }
}
