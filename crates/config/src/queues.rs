//! The `queues` section: bounded queues.

use weir_core::queue::{
    FullQueue, MAX_CAPACITY, MAX_DELIVERIES, MAX_ITEM_AGE, MAX_OUTCOMES_KEPT, MAX_PAYLOAD, MAX_QUEUE_BYTES,
    MAX_VISIBILITY, QueueError, QueueKind, QueueNumbers, QueueOrder, QueuePace, QueueRule, QueueRules,
};
use weir_core::strategy::check_name;
use weir_units::Micros;

use super::errors::MistakeReport;
use super::fields::{KeyedValue, Mapping, NamedNode};
use super::quantities::{duration, duration_within, rate, size};
use super::sentences::sentence;
use super::values::{Scalar, boolean, choice, integer, quote, within};

/// Maximum number of queues.
pub(super) const MAX_QUEUES: usize = 1000;

/// Maximum size of a queue message: the maximum number of items per call, each of the maximum size.
pub const MAX_QUEUE_MESSAGE: usize = 7 << 20;

const DEFAULT_BYTES: usize = 64 << 20;
const DEFAULT_VISIBILITY: Micros = Micros::from_secs(30);
const DEFAULT_DELIVERIES: u64 = 5;
const DEFAULT_OUTCOMES: Micros = Micros::from_secs(24 * 3600);

/// Keys about redelivery, which lists do not have.
const STREAM_KEYS: [&str; 3] = ["max_deliveries", "dead_letter", "outcomes"];

/// Reads the queues.
pub(super) fn queues(
    root: &mut Mapping<'_>,
    max_buffered_bytes: usize,
    report: &mut MistakeReport,
) -> QueueRules {
    let Some(section) = root.take("queues") else { return QueueRules::default() };
    let entries = section.entries(report).unwrap_or_default();
    if entries.len() > MAX_QUEUES {
        section.report(report, format!("has {} queues: at most {MAX_QUEUES}", entries.len()));
    }
    if !entries.is_empty() && max_buffered_bytes < 2 * MAX_QUEUE_MESSAGE {
        let reason = format!(
            "with queues, `server.limits.max_buffered_bytes` must be at least {}, twice the largest message",
            2 * MAX_QUEUE_MESSAGE
        );
        section.report(report, reason);
    }
    QueueRules::new(entries.iter().filter_map(|entry| queue(entry, report)).collect())
}

fn queue(entry: &KeyedValue<'_>, report: &mut MistakeReport) -> Option<QueueRule> {
    let name = check_name(entry.name).map_err(|error| {
        report.at(entry.key_at, entry.value.path(), sentence(&error));
    });
    let mut fields = Mapping::of(&entry.value, report);
    let capacity = fields.require("capacity", "say how many items the queue may hold, such as 1000", report);
    let capacity: Option<u64> = capacity
        .and_then(|value: NamedNode<'_>| value.read(report, |s| within(integer(s)?, 1, MAX_CAPACITY)));
    let bytes = |s: Scalar<'_>| within(size(s)?, MAX_PAYLOAD, MAX_QUEUE_BYTES as usize);
    let max_bytes = fields.read("max_bytes", report, bytes).unwrap_or(DEFAULT_BYTES);
    let pace = fields.take("rate").map(|value| value.read(report, pace));
    let kinds = [("stream", QueueKind::Stream), ("list", QueueKind::List)];
    let kind = fields.read("kind", report, |s| choice(s, &kinds)).unwrap_or(QueueKind::Stream);
    let span = |s: Scalar<'_>| duration_within(s, Micros::from_millis(1), MAX_VISIBILITY);
    let visibility = fields.read("visibility", report, span).unwrap_or(DEFAULT_VISIBILITY);
    let aged = |s: Scalar<'_>| duration_within(s, Micros::from_millis(1), MAX_ITEM_AGE);
    let max_age = fields.read("max_age", report, aged);
    let choices = [("refuse", FullQueue::Refuse), ("drop_oldest", FullQueue::DropOldest)];
    let when_full = fields.read("when_full", report, |s| choice(s, &choices)).unwrap_or_default();
    let order = order(&mut fields, kind, report);
    let stream = StreamKeys::of(&mut fields, kind, report);
    fields.finish(report);
    let StreamKeys { max_deliveries, outcomes } = stream;
    let pace = pace.map_or(Some(None), |pace| pace.map(Some))?;
    let max_bytes = max_bytes as u64;
    let capacity = capacity?;
    let numbers = QueueNumbers {
        kind,
        capacity,
        max_bytes,
        pace,
        visibility,
        max_deliveries,
        outcomes,
        max_age,
        when_full,
        order,
    };
    match QueueRule::new(entry.name, numbers) {
        Ok(rule) => name.is_ok().then_some(rule),
        Err(QueueError { field, value, bound }) => {
            report.at(entry.value.at(), entry.value.path(), format!("`{field}` is {value}: {bound}"));
            None
        }
    }
}

/// The order of a list. Items of a stream come in the order of Enqueue.
fn order(fields: &mut Mapping<'_>, kind: QueueKind, report: &mut MistakeReport) -> QueueOrder {
    if kind == QueueKind::Stream {
        let reason = "is for `kind: list`; items of a stream come in the order of Enqueue";
        fields.refuse(&["order"], reason, report);
        // It is a known key, and has been reported as misplaced.
        drop(fields.take_entry("order"));
        return QueueOrder::Fifo;
    }
    let choices = [("fifo", QueueOrder::Fifo), ("lifo", QueueOrder::Lifo)];
    fields.read("order", report, |s| choice(s, &choices)).unwrap_or_default()
}

/// The settings that only streams have.
struct StreamKeys {
    max_deliveries: Option<u64>,
    outcomes: Micros,
}

impl StreamKeys {
    fn of(fields: &mut Mapping<'_>, kind: QueueKind, report: &mut MistakeReport) -> Self {
        if kind == QueueKind::List {
            let reason = "is for `kind: stream`; an item of a list is delivered once, and gone";
            fields.refuse(&STREAM_KEYS, reason, report);
            // They are known keys, and have been reported as misplaced.
            STREAM_KEYS.iter().for_each(|key| drop(fields.take_entry(key)));
            return Self { max_deliveries: None, outcomes: Micros::ZERO };
        }
        let dead_letter = fields.read("dead_letter", report, boolean).unwrap_or(true);
        if !dead_letter {
            let reason =
                "cannot stand beside `dead_letter: false`: items are then delivered until they are acked";
            fields.refuse(&["max_deliveries"], reason, report);
        }
        let most = fields.read("max_deliveries", report, |s| within(integer(s)?, 1, MAX_DELIVERIES));
        let kept = |s: Scalar<'_>| within(duration(s)?, Micros::ZERO, MAX_OUTCOMES_KEPT);
        let outcomes = fields.read("outcomes", report, kept).unwrap_or(DEFAULT_OUTCOMES);
        Self { max_deliveries: dead_letter.then_some(most.unwrap_or(DEFAULT_DELIVERIES)), outcomes }
    }
}

fn pace(s: Scalar<'_>) -> Result<QueuePace, String> {
    let rate = rate(s)?;
    let period = rate.period;
    if !(1..=1_000_000).contains(&rate.count) || period == Micros::ZERO || period > weir_units::LONGEST_SPAN {
        let bounds = "it must be 1 to 1000000 items, in 1us to 100 years";
        return Err(format!("{} is out of bounds: {bounds}", quote(s.text)));
    }
    Ok(QueuePace { count: rate.count, period })
}
