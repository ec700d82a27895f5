//! Bounded queues: work that waits for workers, and leaves no faster than a rate.
//!
//! * [`QueueRule`]: what a queue may hold, and how long its workers have.
//! * [`BoundedQueue`]: the items and who has them, as a pure state machine. The scripts of `lua/queues/` are its twins
//!   on Redis.
//!
//! ```text
//!   accepted ⇔ depth + items ≤ capacity  and  bytes + payloads ≤ max_bytes
//!   stream: an item holds its place until it is acked; what is not acked in time is delivered again
//!   list:   the place is free as soon as an item is taken
//! ```
//!
//! Items that were delivered too often without an ack go to the dead letters, a queue of its own beside the first.

mod archive;
mod bounded;
mod call;
mod directory;
mod enqueue;
mod item;
mod known_ids;
mod operate;
mod outcome;
mod pace;
mod part;
mod room;
mod rule;
mod settle;
mod stored_item;
mod take;
mod time;

pub use bounded::BoundedQueue;
pub use call::{
    BrowsedItem, DeliveredItem, NewItem, QueueAnswer, QueueOp, QueuePart, QueueRefusal, QueueReply,
    QueueStats, Redelivery, RedeliveryCause,
};
pub use directory::{NamedQueue, QueueRules, UnknownQueue};
pub use item::{ItemId, NoItemId};
pub use outcome::{
    ArchiveRule, ItemFate, KeptPayload, OutcomeRecord, OutcomeSearch, OutcomeTotals, PayloadRule,
};
pub use pace::QueuePace;
pub use part::QueueTotals;
pub use rule::{FullQueue, QueueError, QueueKind, QueueNumbers, QueueOrder, QueueRule};
pub use time::QueueTime;

use weir_units::Micros;

/// The most items that a queue may hold.
pub const MAX_CAPACITY: u64 = 1_000_000;

/// The most bytes of payloads that a queue may hold.
pub const MAX_QUEUE_BYTES: u64 = 1 << 40;

/// The longest payload of an item, in bytes.
pub const MAX_PAYLOAD: usize = 64 << 10;

/// The most items of one call.
pub const MAX_ITEMS: usize = 100;

/// The most bytes of payloads that one call hands out.
pub const MAX_TAKE_BYTES: usize = 1 << 20;

/// The longest id under which an item is put into a queue, in bytes.
pub const MAX_PUT_ID: usize = 128;

/// The longest name of who takes items, in bytes.
pub const MAX_TAKER: usize = 128;

/// The longest outcome of an item, in bytes.
pub const MAX_OUTCOME: usize = 1024;

/// The longest delay of an item that is given back.
pub const MAX_DELAY: Micros = Micros::from_secs(24 * 3600);

/// The longest time that an item may be with a worker.
pub const MAX_VISIBILITY: Micros = Micros::from_secs(24 * 3600);

/// The most deliveries before an item goes to the dead letters.
pub const MAX_DELIVERIES: u64 = 1000;

/// The longest age after which items that no worker took are removed.
pub const MAX_ITEM_AGE: Micros = Micros::from_secs(30 * 24 * 3600);

/// The longest time that outcomes are kept.
pub const MAX_OUTCOMES_KEPT: Micros = Micros::from_secs(30 * 24 * 3600);

/// The most outcomes that a queue may keep.
pub const MAX_OUTCOMES: u64 = 10_000_000;

/// The most outcomes that a queue keeps by default.
pub const DEFAULT_OUTCOMES: u64 = 100_000;

/// Outcomes above the bound that are kept until the next trim, or until a call reads outcomes.
pub const OUTCOMES_OVER: u64 = 32;

/// Bytes of a payload that the archive keeps as its head.
pub const PAYLOAD_HEAD: usize = 256;

/// The most ids that a queue in memory remembers; if its capacity is larger, ten per place.
pub const MAX_KNOWN_IDS: usize = 100_000;

/// Ids that a queue in memory remembers for each place, if that is more than [`MAX_KNOWN_IDS`].
pub const IDS_PER_PLACE: u64 = 10;

/// Outcomes that one search looks at.
pub const OUTCOME_LOOKS: usize = 1_000;

/// Items that one call drops at most to make places.
pub const DROPPED_AT_ONCE: usize = 1_000;

/// New items that one call removes at most because they are too old.
pub const AGED_LOOKS: usize = 1_000;

/// Due items checked per call.
pub const DUE_LOOKS: usize = 100;
