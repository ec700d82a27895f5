//! The section `queues` of the configuration: one table, for the reader and for the schema.

mod archive;

use std::sync::Arc;

use crate::model::{
    ArchiveRule, FullQueue, MAX_CAPACITY, MAX_DELIVERIES, MAX_ITEM_AGE, MAX_PAYLOAD, MAX_QUEUE_BYTES,
    MAX_VISIBILITY, QueueKind, QueueNumbers, QueueOrder, QueuePace, QueueRule, QueueRules,
};
use serde_json::{Value, json};
use weir_config::{
    Applies, Config, FeatureSection, FeatureSetting, NamedEntries, SectionReader, SectionSettings,
    SectionSpec, SettingForm, Suffices, mapping_schema,
};
use weir_units::Micros;

/// Maximum number of queues.
const MAX_QUEUES: usize = 1000;

/// Maximum size of a queue message: the maximum number of items per call, each of the maximum size.
pub(crate) const MAX_QUEUE_MESSAGE: usize = 7 << 20;

const MILLISECOND: Micros = Micros::from_millis(1);

pub(crate) const SECTION: SectionSpec = SectionSpec {
    named: Some(NamedEntries { most: MAX_QUEUES, schema }),
    suffices: Suffices::WithEntries,
    ..SectionSpec::new("queues", "Bounded queues: work that waits for workers.", read)
};

/// Returns the queues of a configuration.
#[must_use]
pub fn configured_queues(config: &Config) -> QueueRules {
    config.section::<QueueRules>(SECTION.name).cloned().unwrap_or_default()
}

/// Makes queues a part of a configuration that is not read from files.
#[must_use]
pub fn with_queues(mut config: Config, queues: QueueRules) -> Config {
    config.sections.push(FeatureSection::new(SECTION.name, Arc::new(queues)));
    config
}

const fn key(
    key: &'static str,
    form: SettingForm,
    default: &'static str,
    about: &'static str,
) -> FeatureSetting {
    FeatureSetting { key, about, default, form, flag: None, applies: Applies::AtReload, more: "" }
}

const CAPACITY: FeatureSetting =
    key("capacity", SettingForm::Count(1, MAX_CAPACITY), "", "Number of items that hold a place.");
const MAX_BYTES: FeatureSetting = key(
    "max_bytes",
    SettingForm::Size(MAX_PAYLOAD, MAX_QUEUE_BYTES as usize),
    "64MiB",
    "Bytes of their payloads.",
);
const RATE: FeatureSetting = key(
    "rate",
    SettingForm::Rate(1_000_000, "it must be 1 to 1000000 items, in 1us to 100 years"),
    "",
    "Rate at which items leave; left out, as fast as they are taken.",
);
const KIND: FeatureSetting = key(
    "kind",
    SettingForm::Choice(&["stream", "list"]),
    "stream",
    "At least once, with acks; or at most once, without.",
);
const VISIBILITY: FeatureSetting = key(
    "visibility",
    SettingForm::DescribedSpan(MILLISECOND, MAX_VISIBILITY),
    "30s",
    "Time until an item without an ack is delivered again, and for which ids are known; 1ms to 24h.",
);
const DELIVERIES: FeatureSetting = key(
    "max_deliveries",
    SettingForm::Count(1, MAX_DELIVERIES),
    "5",
    "After so many an item goes to the dead letters.",
);
const DEAD_LETTER: FeatureSetting = key(
    "dead_letter",
    SettingForm::Switch,
    "true",
    "Enables dead letters; without them items are delivered until they are acked.",
);
const MAX_AGE: FeatureSetting = key(
    "max_age",
    SettingForm::DescribedSpan(MILLISECOND, MAX_ITEM_AGE),
    "",
    "Older items that no worker has go to the dead letters, or are dropped without them; 1ms to 30d.",
);
const WHEN_FULL: FeatureSetting = key(
    "when_full",
    SettingForm::Choice(&["refuse", "drop_oldest"]),
    "refuse",
    "Behaviour of a full queue: it refuses new items, or drops the oldest that no worker has.",
);
const ORDER: FeatureSetting = key(
    "order",
    SettingForm::Choice(&["fifo", "lifo"]),
    "fifo",
    "Order of deliveries of a list: the oldest or the newest item first.",
);

/// Keys about redelivery, which lists do not have.
const STREAM_KEYS: [&str; 3] = [DELIVERIES.key, DEAD_LETTER.key, archive::OUTCOMES.key];

/// A queue. Keys about redelivery are for streams only, the order for lists.
fn schema() -> Value {
    let keys = [
        CAPACITY,
        MAX_BYTES,
        RATE,
        KIND,
        VISIBILITY,
        DELIVERIES,
        DEAD_LETTER,
        archive::OUTCOMES,
        MAX_AGE,
        WHEN_FULL,
        ORDER,
    ];
    let mut queue = mapping_schema(&keys, &[CAPACITY.key]);
    archive::widen(&mut queue["properties"][archive::OUTCOMES.key]);
    queue["if"] = json!({ "properties": { "kind": { "const": "list" } }, "required": ["kind"] });
    queue["then"] =
        json!({ "properties": { "max_deliveries": false, "dead_letter": false, "outcomes": false } });
    queue["else"] = json!({ "properties": { "order": false } });
    queue["not"] = json!({
        "properties": { "dead_letter": { "const": false } }, "required": ["dead_letter", "max_deliveries"],
    });
    queue
}

fn read(section: &mut SectionReader<'_, '_>) -> Option<Arc<dyn SectionSettings>> {
    let (present, most) = (!section.is_empty(), section.server().limits.max_buffered_bytes);
    if present && most < 2 * MAX_QUEUE_MESSAGE {
        section.report_here(format!(
            "with queues, `server.limits.max_buffered_bytes` must be at least {}, twice the largest message",
            2 * MAX_QUEUE_MESSAGE
        ));
    }
    Some(Arc::new(QueueRules::new(section.entries(queue))))
}

fn queue(name: &str, fields: &mut SectionReader<'_, '_>) -> Option<QueueRule> {
    fields.require(CAPACITY.key, "say how many items the queue may hold, such as 1000");
    let capacity = fields.count(&CAPACITY);
    let max_bytes = fields.size(&MAX_BYTES);
    let pace = fields.rate(&RATE).map(|rate| QueuePace { count: rate.count, period: rate.period });
    let kind = fields.choice(&KIND, &[QueueKind::Stream, QueueKind::List]).unwrap_or(QueueKind::Stream);
    let visibility = fields.span(&VISIBILITY);
    let max_age = fields.optional_span(&MAX_AGE);
    let policies = [FullQueue::Refuse, FullQueue::DropOldest];
    let when_full = fields.choice(&WHEN_FULL, &policies).unwrap_or_default();
    let order = order(fields, kind);
    let (max_deliveries, outcomes) = redelivery(fields, kind);
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
    let rule = QueueRule::new(name, numbers);
    rule.map_err(|error| fields.report_here(format!("`{}` is {}: {}", error.field, error.value, error.bound)))
        .ok()
}

/// The order of a list. Items of a stream come in the order of Enqueue.
fn order(fields: &mut SectionReader<'_, '_>, kind: QueueKind) -> QueueOrder {
    if kind == QueueKind::Stream {
        let reason = "is for `kind: list`; items of a stream come in the order of Enqueue";
        fields.refuse(&[ORDER.key], reason);
        return QueueOrder::Fifo;
    }
    fields.choice(&ORDER, &[QueueOrder::Fifo, QueueOrder::Lifo]).unwrap_or_default()
}

/// Settings of streams alone: the most deliveries, if there are dead letters, and the archive.
fn redelivery(fields: &mut SectionReader<'_, '_>, kind: QueueKind) -> (Option<u64>, ArchiveRule) {
    if kind == QueueKind::List {
        fields.refuse(&STREAM_KEYS, "is for `kind: stream`; an item of a list is delivered once, and gone");
        return (None, ArchiveRule::new(Micros::ZERO));
    }
    let dead_letter = fields.switch(&DEAD_LETTER);
    if !dead_letter {
        let reason =
            "cannot stand beside `dead_letter: false`: items are then delivered until they are acked";
        fields.refuse(&[DELIVERIES.key], reason);
    }
    let most = fields.count(&DELIVERIES);
    (dead_letter.then_some(most), archive::read(fields))
}
