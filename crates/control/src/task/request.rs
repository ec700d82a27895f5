//! Requests to the task of live control, and their answers.

use std::collections::HashMap;

use tokio::sync::oneshot;
use weir_core::strategy::Unknown;
use weir_node::audit::change_id;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{ControlChange, ControlEntry};
use weir_units::Micros;

use crate::bans::BannedUntil;
use crate::model::ControlPosition;

/// Maximum length of a reason, in bytes.
pub const MAX_REASON: usize = 1024;

/// A request to the task.
pub(super) enum ControlRequest {
    Change(Box<ChangeAsked>, oneshot::Sender<Result<Changed, ControlFault>>),
    Lift(BanLift, oneshot::Sender<Result<BannedUntil, ControlFault>>),
    Find(u64, oneshot::Sender<FoundChange>),
    History(usize, oneshot::Sender<Vec<ControlChange>>),
}

/// A change that a caller asks for, within its bounds.
#[derive(Debug, Clone)]
pub struct ChangeAsked {
    /// The method, for the audit.
    pub method: &'static str,
    /// The entries: all are changed, or none.
    pub entries: Vec<EntryAsked>,
    /// Lifetime of the entries.
    pub expires_after: Option<Micros>,
    /// Reason of the change, for the audit.
    pub reason: String,
    /// The id of the change, if the caller chose it.
    pub id: Option<u64>,
    /// True to check the change without making it.
    pub dry_run: bool,
    /// The caller.
    pub by: String,
}

/// An entry that a change is about.
#[derive(Debug, Clone)]
pub struct EntryAsked {
    /// The entry.
    pub entry: Entry,
    /// True for a deletion, where the numbers do not matter.
    pub deletes: bool,
    /// True if all states of the strategy start full.
    pub resets: bool,
    /// The version that the entry must have; 0 and 0: it must not exist.
    pub expect: Option<ControlPosition>,
}

impl ChangeAsked {
    /// The text of a mistake in the entry at `place`.
    pub(super) fn named(&self, place: usize, mistake: &str) -> String {
        if self.entries.len() == 1 { mistake.to_owned() } else { format!("changes[{place}]: {mistake}") }
    }
}

/// A ban that a caller wants to be lifted.
#[derive(Debug, Clone)]
pub struct BanLift {
    /// The name of the ban.
    pub member: String,
    /// Reason, for the audit.
    pub reason: String,
    /// True to check the call without lifting anything.
    pub dry_run: bool,
    /// The caller.
    pub by: String,
}

/// Result of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The entries.
    pub entries: Vec<ChangedEntry>,
    /// The id and the version of the change; `None` if nothing was changed.
    pub change: Option<(u64, u64)>,
}

/// An entry that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedEntry {
    /// The entry after the change.
    pub after: ControlEntry,
    /// The entry before it.
    pub before: Option<ControlEntry>,
    /// The files' numbers of each limit that it names.
    pub files: HashMap<String, String>,
}

/// Fate of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundChange {
    /// The change was made.
    Made {
        /// The version that it got.
        version: u64,
    },
    /// The store has not made it up to this position.
    NotMade {
        /// The last change of the store.
        position: ControlPosition,
    },
    /// The store does not answer.
    Unknown {
        /// Error of the store.
        error: String,
    },
}

/// Reason why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ControlFault {
    /// The change has mistakes, one line for each.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// A name that the files do not have.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The entry does not exist.
    #[error("there is no such entry; `weir control list` shows all")]
    Missing,
    /// The ban does not exist.
    #[error("there is no such ban, or it has ended; `weir bans` shows all")]
    NoBan,
    /// The entry has another version than the caller expects.
    #[error(
        "expect_version: the entry is at version {}:{}; read it again, and decide whether your change still fits",
        .0.version, change_id(.0.change)
    )]
    Stale(ControlPosition),
    /// The store has lost changes, and other nodes may know later ones than this node.
    #[error(
        "expect_version: Redis has lost changes of live control, and nodes send back what they know of them; read the entry \
         again, and try again in a second"
    )]
    Lost,
    /// The store has as many entries as it takes.
    #[error("there are {0} entries, which is the most; delete some, or write them into the files")]
    Full(usize),
    /// The store failed.
    #[error(
        "the store of the entries does not answer ({error}): it is not known whether change {change} was made; ask with \
         `weir control applied {change}`, or send the call again with this id, which changes nothing twice"
    )]
    Store {
        /// Error of the store.
        error: String,
        /// The id of the change.
        change: String,
    },
    /// The store failed, and nothing is known of a ban.
    #[error(
        "the store of the bans does not answer ({0}); nothing is known of the change: look at the bans, and try again"
    )]
    Bans(String),
    /// The change of one of several entries was refused.
    #[error("changes[{place}]: {fault}; nothing was changed")]
    Entry {
        /// Index of the entry.
        place: usize,
        /// Reason of the refusal.
        fault: Box<ControlFault>,
    },
    /// The audit or the cache file cannot be written.
    #[error("{0}; nothing was changed")]
    NotWritten(String),
    /// The queue of requests is full.
    #[error("too many changes wait for their turn; try again later")]
    Busy,
    /// The server ends.
    #[error("this node shuts down; try another one")]
    Ending,
}

impl ControlFault {
    /// The fault of the entry at `place`, if there are several.
    pub(super) fn in_entry(self, place: usize, asked: &ChangeAsked) -> Self {
        if asked.entries.len() == 1 { self } else { Self::Entry { place, fault: Box::new(self) } }
    }
}
