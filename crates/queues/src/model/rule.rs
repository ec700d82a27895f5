//! Parameters of a queue, checked once.

use weir_units::{LONGEST_SPAN, Micros};

use super::{
    ArchiveRule, MAX_CAPACITY, MAX_DELIVERIES, MAX_ITEM_AGE, MAX_OUTCOMES, MAX_OUTCOMES_KEPT, MAX_PAYLOAD,
    MAX_QUEUE_BYTES, MAX_VISIBILITY, QueuePace,
};

/// Checked parameters of a configured queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRule {
    name: Box<str>,
    numbers: QueueNumbers,
}

/// Parameters of a [`QueueRule`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueNumbers {
    /// Delivery guarantee.
    pub kind: QueueKind,
    /// The most items.
    pub capacity: u64,
    /// The most bytes of their payloads.
    pub max_bytes: u64,
    /// Pace of deliveries. `None`: unlimited.
    pub pace: Option<QueuePace>,
    /// Visibility timeout: time until an unacked item is delivered again. Also the lifetime of ids.
    pub visibility: Micros,
    /// Deliveries without an ack after which an item is moved to the dead letters. `None`: unlimited.
    pub max_deliveries: Option<u64>,
    /// Bounds of the archive.
    pub outcomes: ArchiveRule,
    /// Age above which items that no worker has are removed. `None`: never.
    pub max_age: Option<Micros>,
    /// Effect of an Enqueue on a full queue.
    pub when_full: FullQueue,
    /// Order of a list.
    pub order: QueueOrder,
}

/// Effect of an Enqueue on a full queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FullQueue {
    /// The Enqueue is refused.
    #[default]
    Refuse,
    /// The oldest items that no worker has are dropped.
    DropOldest,
}

/// Order in which the items of a list are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueOrder {
    /// The oldest first.
    #[default]
    Fifo,
    /// The newest first.
    Lifo,
}

/// Delivery guarantee of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// Delivery at least once: an item holds its place until it is acked.
    Stream,
    /// Delivery at most once: an item is gone as soon as it is taken.
    List,
}

/// A parameter out of its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}: {bound}")]
pub struct QueueError {
    /// The field, as the configuration names it.
    pub field: &'static str,
    /// Value of the tag.
    pub value: String,
    /// The bound that it breaks, as a sentence.
    pub bound: String,
}

impl FullQueue {
    /// Name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::DropOldest => "drop_oldest",
        }
    }
}

impl QueueOrder {
    /// Name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
        }
    }
}

impl QueueKind {
    /// Name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::List => "list",
        }
    }
}

impl QueueRule {
    /// Checks the bounds of the parameters.
    pub fn new(name: &str, numbers: QueueNumbers) -> Result<Self, QueueError> {
        let QueueNumbers { capacity, max_bytes, pace, visibility, max_deliveries, outcomes, max_age, .. } =
            &numbers;
        within("capacity", *capacity, 1, MAX_CAPACITY, "")?;
        within("max_bytes", *max_bytes, MAX_PAYLOAD as u64, MAX_QUEUE_BYTES, " bytes")?;
        if let Some(pace) = pace {
            within("rate", pace.count, 1, 1_000_000, " items")?;
            within("rate", pace.period.0, 1, LONGEST_SPAN.0, "us")?;
        }
        within("visibility", visibility.0, 1_000, MAX_VISIBILITY.0, "us")?;
        if let Some(deliveries) = max_deliveries {
            within("max_deliveries", *deliveries, 1, MAX_DELIVERIES, "")?;
        }
        within("outcomes.keep", outcomes.keep.0, 0, MAX_OUTCOMES_KEPT.0, "us")?;
        within("outcomes.max", outcomes.max, 1, MAX_OUTCOMES, "")?;
        if let Some(age) = max_age {
            within("max_age", age.0, 1_000, MAX_ITEM_AGE.0, "us")?;
        }
        Ok(Self { name: name.into(), numbers })
    }

    /// Name of the queue.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters of the queue.
    #[must_use]
    pub fn numbers(&self) -> &QueueNumbers {
        &self.numbers
    }
}

fn within(field: &'static str, value: u64, min: u64, max: u64, unit: &str) -> Result<(), QueueError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let bound = format!("it must be {min} to {max}{unit}");
    Err(QueueError { field, value: value.to_string(), bound })
}
