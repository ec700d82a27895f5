//! Where the entries are: in memory and the cache file, or in Redis.

use weir_core::control::{ControlPut, ControlRecord, ControlRefusal, ControlState};
use weir_store::control::ControlLink;
use weir_units::Micros;

/// The store of the entries.
pub enum ControlStore {
    /// This process, and the cache file.
    Memory(Box<ControlState>),
    /// Redis.
    Redis(Box<ControlLink>),
}

/// How a put ended: the records that were written, or why none was.
pub(super) type PutOutcome = Result<Vec<ControlRecord>, ControlRefusal>;

impl ControlStore {
    /// Makes a change. An error: it is not known whether it was made.
    pub(super) async fn put(&mut self, now: Micros, put: &ControlPut) -> Result<PutOutcome, String> {
        match self {
            Self::Memory(state) => Ok(state.put(now.0, put.clone())),
            Self::Redis(link) => link.put(put).await,
        }
    }

    pub(super) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }
}
