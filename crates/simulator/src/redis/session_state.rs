//! What a connection has said of itself.

use super::reply::RespVersion;

/// What a connection has said of itself.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    pub(super) id: i64,
    pub(super) version: RespVersion,
    pub(super) name: Vec<u8>,
    /// Whether the next command comes after ASKING.
    pub(super) asking: bool,
    pub(super) closed: bool,
}
