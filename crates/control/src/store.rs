//! Storage of the entries: memory with the cache file, or scripts.

mod scripts;

pub use self::scripts::{CONTROL, ControlLink, ControlSynced};
use crate::model::ControlState;

/// The store of the entries.
pub enum ControlStore {
    /// Entries in this process and the cache file.
    Memory(Box<ControlState>),
    /// Redis.
    Redis(Box<ControlLink>),
}

impl ControlStore {
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }
}
