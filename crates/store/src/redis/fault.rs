//! Classifies errors of Redis: redirect, retry, reconnect, or fail.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::topology::Address;
use crate::StoreError;

/// A classified error of a call to a node.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// A MOVED redirect: the slot belongs to another node from now on. Nothing was executed.
    Moved(Address),
    /// An ASK redirect: the slot is being migrated, so only this request goes to the other node. Nothing was executed.
    Ask(Address),
    /// The call spanned several slots, and this request's slot is not, or not fully, on the node. Nothing was executed
    /// for it; it is retried in a call of its own slot.
    Stray,
    /// A retryable error. Nothing was executed, so the same request may be sent again.
    NotYet(StoreError),
    /// The node is no longer a master, or cannot be reached: the connection must be closed.
    Broken(StoreError),
    /// A permanent error: a retry would get it too.
    Failed(StoreError),
}

impl Fault {
    /// Classifies the error of one request within a call over several slots.
    pub(super) fn within(error: StoreError) -> Self {
        let stray = |why: &str| {
            ["non local key", "same slot", "cluster is down", "CLUSTERDOWN"].iter().any(|it| why.contains(it))
        };
        match error {
            StoreError::Unreadable(why) if stray(&why) => Self::Stray,
            StoreError::Refused(why) if stray(&why) => Self::Stray,
            error => Self::Failed(error),
        }
    }

    /// Classifies an error reply or a connection error. `host` is the node's own, for redirects without a host.
    pub(super) fn new(error: &RedisError, host: &str) -> Self {
        let refused = || match error.code() {
            Some("WRONGTYPE") => StoreError::Unreadable(error.to_string().into()),
            _ => StoreError::Refused(error.to_string().into()),
        };
        let redirect = || {
            let (address, _slot) = error.redirect_node()?;
            let (to, port) = address.rsplit_once(':')?;
            Some(Address::new(if to.is_empty() { host } else { to }, port.parse().ok()?))
        };
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => {
                redirect().map_or_else(|| Self::Failed(refused()), Self::Moved)
            }
            ErrorKind::Server(ServerErrorKind::Ask) => {
                redirect().map_or_else(|| Self::Failed(refused()), Self::Ask)
            }
            ErrorKind::Server(
                ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown,
            ) => Self::NotYet(refused()),
            ErrorKind::Server(ServerErrorKind::ReadOnly) => Self::Broken(refused()),
            ErrorKind::Server(_) | ErrorKind::Extension => Self::Failed(refused()),
            _ => Self::Broken(StoreError::Unavailable(error.to_string().into())),
        }
    }
}

/// Code of a node that is no longer a master.
pub(super) const READ_ONLY: &str = "READONLY";

/// Codes of errors that speak of the node, not of a key, a script or a right.
const OF_THE_NODE: [&str; 5] = ["LOADING", "OOM", READ_ONLY, "CLUSTERDOWN", "MASTERDOWN"];

/// True if the text of an error begins with such a code.
pub(super) fn speaks_of_node(why: &str) -> bool {
    let code = why.split_whitespace().next().unwrap_or_default();
    OF_THE_NODE.contains(&code.trim_start_matches('-').trim_end_matches(':'))
}

pub(super) fn node_failure(error: &RedisError) -> Option<String> {
    match error.code() {
        Some(code) => OF_THE_NODE.contains(&code).then(|| as_written(error)),
        None => Some(error.to_string()),
    }
}

/// Returns the error in Redis's own words, which can be searched for in its manual.
pub(super) fn as_written(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}
