//! Metrics of queues. Labels are the configured names, each with its dead-letter queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::proto::Metric;
use weir_config::AccessRight;
use weir_node::card::{CardColumn, CardForm, CardSpec};
use weir_node::telemetry::families::{FamilyCollector, FamilySpec, counter, gauge};
use weir_units::Micros;

/// Event of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueEvent {
    /// Enqueued.
    Accepted,
    /// Rejected: the queue was full.
    Full,
    /// Rejected: the call has more items than the queue can ever hold.
    Never,
    /// Delivered for the first time.
    Delivered,
    /// Delivered again after a Nack.
    RedeliveredNack,
    /// Delivered again because the worker did not ack it in time.
    RedeliveredVisibility,
    /// Acked.
    Acked,
    /// Nacked.
    Nacked,
    /// Given more time.
    Extended,
    /// Moved to the dead-letter queue.
    DeadLettered,
    /// Removed because no worker had taken it within `max_age`.
    AgedOut,
    /// Dropped for new items.
    Dropped,
    /// Removed by an operator.
    Purged,
    /// Brought back from the dead letters.
    Redriven,
}

/// The counters of one queue, or of its dead letters.
#[derive(Debug, Default)]
pub struct QueueCounters {
    events: [AtomicU64; EVENTS.len()],
    /// Depth in the last answer.
    depth: AtomicU64,
    /// Age of the oldest item in the last answer, in microseconds.
    oldest: AtomicU64,
    /// Calls waiting for an item.
    waiting: AtomicU64,
}

/// Removed queues whose counters are still shown.
const MAX_REMOVED: usize = 1_000;

/// The counters of all queues, which outlast reloads. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct QueueMetrics(Arc<Mutex<Vec<NamedCounters>>>);

/// The counters of one queue, or of its dead letters, under its name.
type NamedCounters = (String, Arc<QueueCounters>);

/// Every event with its name, in the order of the counters.
const EVENTS: [(QueueEvent, &str); 14] = [
    (QueueEvent::Accepted, "accepted"),
    (QueueEvent::Full, "full"),
    (QueueEvent::Never, "never"),
    (QueueEvent::Delivered, "delivered"),
    (QueueEvent::RedeliveredNack, "redelivered_nack"),
    (QueueEvent::RedeliveredVisibility, "redelivered_visibility"),
    (QueueEvent::Acked, "acked"),
    (QueueEvent::Nacked, "nacked"),
    (QueueEvent::Extended, "extended"),
    (QueueEvent::DeadLettered, "dead_lettered"),
    (QueueEvent::AgedOut, "aged_out"),
    (QueueEvent::Dropped, "dropped"),
    (QueueEvent::Purged, "purged"),
    (QueueEvent::Redriven, "redriven"),
];

impl QueueCounters {
    /// Counts an event for `items` items.
    pub fn count(&self, event: QueueEvent, items: u64) {
        self.events[event as usize].fetch_add(items, Relaxed);
    }

    /// Records the number of items that hold a place.
    pub fn saw_depth(&self, depth: u64) {
        self.depth.store(depth, Relaxed);
    }

    /// Records the age of the oldest item; 0 if there is none.
    pub fn saw_oldest(&self, age: Micros) {
        self.oldest.store(age.0, Relaxed);
    }

    /// The depth that was recorded last.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.depth.load(Relaxed)
    }

    /// Counts one more waiting call, or one less.
    pub fn waits(&self, more: bool) {
        if more {
            self.waiting.fetch_add(1, Relaxed)
        } else {
            self.waiting.fetch_sub(1, Relaxed)
        };
    }
}

impl QueueMetrics {
    /// Sets the queues that are shown, and returns their counters in order. A known queue keeps its own.
    #[must_use]
    pub fn configure(&self, names: impl Iterator<Item = String>) -> Vec<Arc<QueueCounters>> {
        let mut all = self.0.lock();
        let mut counters = Vec::new();
        for name in names {
            let known = all.iter().position(|(known, _)| *known == name).map(|place| all.remove(place));
            // Those that are not named move to the front, where the oldest are dropped.
            let (name, own) = known.unwrap_or_else(|| (name, Arc::default()));
            counters.push(Arc::clone(&own));
            all.push((name, own));
        }
        let surplus = all.len().saturating_sub(counters.len() + MAX_REMOVED);
        all.drain(..surplus);
        counters
    }

    /// The collector.
    pub(crate) fn collector(&self) -> Result<impl Collector + 'static, prometheus::Error> {
        let metrics = self.clone();
        FamilyCollector::new(FAMILIES, move || metrics.families())
    }

    fn families(&self) -> [Vec<Metric>; 4] {
        let queues = self.0.lock();
        let events = queues.iter().flat_map(|(name, counters)| {
            EVENTS.map(|(event, called)| {
                let labels = [("queue", name.as_str()), ("event", called)];
                counter(&labels, counters.events[event as usize].load(Relaxed))
            })
        });
        let gauges = |value: fn(&QueueCounters) -> f64| -> Vec<Metric> {
            let one = |(name, counters): &NamedCounters| gauge(&[("queue", name)], value(counters));
            queues.iter().map(one).collect()
        };
        [
            events.collect(),
            gauges(|counters| counters.depth.load(Relaxed) as f64),
            gauges(|counters| counters.oldest.load(Relaxed) as f64 / 1e6),
            gauges(|counters| counters.waiting.load(Relaxed) as f64),
        ]
    }
}

/// The card of the page `/ui`.
pub(crate) static CARD: CardSpec = CardSpec {
    title: "Queues",
    about: "items, and how long the oldest has been there",
    label: "queue",
    columns: &[
        CardColumn { heading: "items", metric: "weir_queue_depth", form: CardForm::Count, is_wide: false },
        CardColumn {
            heading: "oldest",
            metric: "weir_queue_oldest_item_seconds",
            form: CardForm::Seconds,
            is_wide: false,
        },
        CardColumn {
            heading: "waiting calls",
            metric: "weir_queue_waiting_takes",
            form: CardForm::Count,
            is_wide: true,
        },
    ],
    may_show: |rights, queue| rights.may_queue(&[AccessRight::Inspect], queue),
};

const FAMILIES: [FamilySpec; 4] = [
    FamilySpec::counter(
        "weir_queue_items_total",
        "What happened to the items of queues.",
        &["queue", "event"],
    ),
    FamilySpec::gauge(
        "weir_queue_depth",
        "Items that hold a place in a queue, as the store's last answer to this node said.",
        &["queue"],
    ),
    FamilySpec::gauge(
        "weir_queue_oldest_item_seconds",
        "Age of the oldest item of a queue, as the store said; 0 if the queue is empty.",
        &["queue"],
    ),
    FamilySpec::gauge("weir_queue_waiting_takes", "Calls that wait for an item of a queue.", &["queue"]),
];
