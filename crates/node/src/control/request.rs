//! Requests to the task of live control, and their answers.

use std::collections::HashMap;

use tokio::sync::oneshot;
use weir_core::control::ControlPosition;
use weir_core::strategy::Unknown;
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{ControlChange, ControlEntry};
use weir_units::Micros;

use super::banned::BannedUntil;
use crate::audit::change_id;

/// Maximum length of a reason, in bytes.
pub const MAX_REASON: usize = 1024;

/// A request to the task.
pub(super) enum ControlRequest {
    Change(Box<ChangeAsked>, oneshot::Sender<Result<Changed, ControlFault>>),
    Lift(BanLift, oneshot::Sender<Result<BannedUntil, ControlFault>>),
    History(usize, oneshot::Sender<Vec<ControlChange>>),
}

/// A change that a caller asks for, within its bounds.
#[derive(Debug, Clone)]
pub struct ChangeAsked {
    /// The method, for the audit.
    pub method: &'static str,
    /// The entry.
    pub entry: Entry,
    /// It is deleted; its numbers do not matter.
    pub deletes: bool,
    /// All states of its strategy start full.
    pub resets: bool,
    /// How long it lasts.
    pub expires_after: Option<Micros>,
    /// Why.
    pub reason: String,
    /// The version that the entry must have; 0 and 0: it must not exist.
    pub expect: Option<ControlPosition>,
    /// Nothing is changed.
    pub dry_run: bool,
    /// The caller.
    pub by: String,
}

/// A ban that a caller wants to be lifted.
#[derive(Debug, Clone)]
pub struct BanLift {
    /// The name of the ban.
    pub member: String,
    /// Why.
    pub reason: String,
    /// Nothing is lifted.
    pub dry_run: bool,
    /// The caller.
    pub by: String,
}

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The entry after the change.
    pub after: ControlEntry,
    /// The entry before it.
    pub before: Option<ControlEntry>,
    /// The files' numbers of each limit that it names.
    pub files: HashMap<String, String>,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ControlFault {
    /// Every mistake, a line each.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// A name that the files do not have.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// There is no such entry.
    #[error("there is no such entry; `weir control list` shows all")]
    Missing,
    /// There is no such ban.
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
    /// There are too many entries.
    #[error("there are {0} entries, which is the most; delete some, or write them into the files")]
    Full(usize),
    /// The store failed.
    #[error(
        "the store of the entries does not answer ({0}); nothing is known of the change: look at the entry, and try again"
    )]
    Store(String),
    /// The audit or the cache file cannot be written.
    #[error("{0}; nothing was changed")]
    NotWritten(String),
    /// Too many requests wait.
    #[error("too many changes wait for their turn; try again later")]
    Busy,
    /// The server ends.
    #[error("this node shuts down; try another one")]
    Ending,
}
