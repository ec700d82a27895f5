//! State that a connection has set for itself.

use super::reply::RespVersion;

/// State that a connection has set for itself.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    pub(super) id: i64,
    pub(super) version: RespVersion,
    pub(super) name: Vec<u8>,
    /// True if the next command comes after ASKING.
    pub(super) asking: bool,
    pub(super) closed: bool,
}
