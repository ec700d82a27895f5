//! Live control: entries that operators change while nodes serve, and how nodes and a store agree on them.
//!
//! * [`ControlState`]: the records of a store and its last changes. `lua/control/` is its twin on Redis.
//! * [`ControlMirror`]: what one node knows, and how it catches up with a store that may have lost changes.
//! * [`BanState`]: bans that nodes share, and [`DenialSketch`], which finds callers to ban.
//! * [`encode_record`], [`decode_record`]: the bytes of a record, the same in Redis and in a node's cache file.
//!
//! ```text
//!   version  = max(last + 1, the store's time in µs, what the writer knows + 1)
//!   newer    ⇔ greater (version, change)                         the newer record of a key stays, wherever it meets another
//!   position = (version, change) of the last change of a store   a node asks for what came after its own
//! ```
//!
//! A store that does not know the position of a node has lost changes, or the node was away for too long. Then both show
//! one another all records, deletions included, and each takes what is newer. Deletions and expired records are
//! therefore kept for [`ENDED_KEPT`].
//!
//! Records are opaque: what an entry means is up to the nodes.

mod bans;
mod changes;
mod encoding;
mod mirror;
mod put;
mod record;
mod state;

pub use bans::{
    Ban, BanChanges, BanRule, BanSet, BanState, DenialSketch, MAX_BAN_MEMBER, MAX_BANS, MAX_COUNTED,
};
pub use changes::ChangesSince;
pub use encoding::{ControlDecodeError, HEADER_BYTES, decode_record, encode_record, fault};
pub use mirror::{ControlLoss, ControlMirror, ControlReconciled};
pub use put::{ControlPut, ControlRefusal, RefusedPut, check_puts};
pub use record::{ControlPosition, ControlRecord};
pub use state::{ControlChanges, ControlState, PlannedPut};
use weir_units::Micros;

/// Prefix of the keys of generations. Such a record never ends, and its version is the generation.
pub const GENERATION_PREFIX: &str = "generation/";

/// The longest key of a record, in bytes.
pub const MAX_CONTROL_KEY: usize = 4 << 10;

/// The longest body of a record, in bytes.
pub const MAX_CONTROL_BODY: usize = 16 << 10;

/// The most entries that are in force at a time. Generations, deletions and expired entries do not count.
pub const MAX_CONTROL_ENTRIES: usize = 100_000;

/// The most records of all kinds to which a put may add one.
pub const MAX_CONTROL_RECORDS: usize = 4 * MAX_CONTROL_ENTRIES;

/// The most records of all kinds, also after merges.
pub const MAX_MERGED_RECORDS: usize = 2 * MAX_CONTROL_RECORDS;

/// The most entries of one put.
pub const MAX_PUT_TOGETHER: usize = 1_000;

/// The most bytes of keys and bodies of one put.
pub const MAX_PUT_BYTES: usize = 1 << 20;

/// The most changes that a store can repeat to nodes that ask for them. After a change of many records these are fewer:
/// see [`changes_kept`].
pub const MAX_CONTROL_CHANGES: usize = 10_000;

/// Number of changes that a store keeps after a change of `records` records: together they have about as many records
/// as there may be entries.
#[must_use]
pub fn changes_kept(records: usize) -> usize {
    (MAX_CONTROL_ENTRIES / records.max(1)).clamp(1, MAX_CONTROL_CHANGES)
}

/// Time for which a deletion or an expired record is kept, by the store's clock.
pub const ENDED_KEPT: Micros = Micros::from_secs(24 * 3_600);

/// The greatest version that a store takes over from others. The rest below 2^53 is for changes that follow it.
pub const MAX_CONTROL_VERSION: u64 = (1 << 53) - (1 << 32);

/// The most changes, and about the most bytes, of one answer to a node.
pub const MAX_POLLED_CHANGES: usize = 100;
/// See [`MAX_POLLED_CHANGES`].
pub const MAX_POLLED_BYTES: usize = 1 << 20;

/// The most records of one answer to a node, beyond those of one change: Redis cannot return more values from a script.
pub const MAX_POLLED_RECORDS: usize = 3_000;

/// The most old records that a put drops.
pub const MAX_DROPPED: usize = 100;
