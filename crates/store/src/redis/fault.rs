//! What an error of Redis means for the request that got it.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::topology::Address;
use crate::StoreError;

/// Why a node did not decide, and what to do about it.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The slot belongs to another node: ask there, from now on. Nothing was executed.
    Moved(Address),
    /// The slot is on its way to another node: ask there, this once. Nothing was executed.
    Ask(Address),
    /// A call over several slots, and this request's is not the node's, or not quite. Nothing was executed
    /// for it; ask again with a call of its own slot.
    Stray,
    /// The node cannot answer yet. Nothing was executed; the same request may be sent again.
    NotYet(StoreError),
    /// The node is no longer what it was, or cannot be reached: the connection must go.
    Broken(StoreError),
    /// The node answered with an error that another try would get too.
    Failed(StoreError),
}

impl Fault {
    /// What an error within a call over several slots means for the request that got it.
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

    /// Reads an error reply, or an error of the connection. `host` is the node that was asked.
    pub(super) fn of(error: &RedisError, host: &str) -> Self {
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

/// An error as Redis wrote it, which is what its manual can be searched for.
pub(super) fn as_written(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}
