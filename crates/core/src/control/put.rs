//! A change that an operator asks for, and why a store refuses it.

use weir_units::Micros;

use super::record::ControlPosition;
use super::{GENERATION_PREFIX, MAX_CONTROL_BODY, MAX_CONTROL_KEY};

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPut {
    /// The entry's key.
    pub key: Box<str>,
    /// The change that must have written the entry; [`ControlPosition::NONE`] if there must be none in force.
    pub expect: Option<ControlPosition>,
    /// The random id of this change. A put that is repeated under its id is answered as before.
    pub change: u64,
    /// When the entry ends, from the store's time on.
    pub expires_after: Option<Micros>,
    /// The new body; `None` deletes the entry.
    pub body: Option<Box<[u8]>>,
    /// What is kept of the entry if it is deleted, such as who did it.
    pub tombstone: Box<[u8]>,
    /// The key of a generation, which gets the version of this change in the same step.
    pub generation: Option<Box<str>>,
}

/// Why a change was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlRefusal {
    /// The entry is not the expected one.
    #[error("the entry is not the one that was expected: its version is {}", current.version)]
    Stale {
        /// The change that wrote the entry that is in force; [`ControlPosition::NONE`] if there is none.
        current: ControlPosition,
    },
    /// The store has as many entries as it may have.
    #[error("there are {most} entries, and there cannot be more")]
    Full {
        /// The bound.
        most: usize,
    },
    /// There is no entry to delete.
    #[error("there is no such entry")]
    Missing,
    /// A field has a wrong length.
    #[error("`{field}` has {length} bytes, and must have {least} to {most}")]
    Length {
        /// The field.
        field: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The least length.
        least: usize,
        /// The greatest length.
        most: usize,
    },
    /// An entry has the key of a generation, or a generation that of an entry.
    #[error("`{key}`: keys of generations begin with \"{GENERATION_PREFIX}\", and others do not")]
    Reserved {
        /// The key.
        key: Box<str>,
    },
}

impl ControlPut {
    /// The body of the record that it writes.
    #[must_use]
    pub fn kept(&self) -> &[u8] {
        self.body.as_deref().unwrap_or(&self.tombstone)
    }

    /// Checks keys and lengths.
    pub fn check(&self) -> Result<(), ControlRefusal> {
        let bounded = |field: &'static str, length: usize, least: usize, most: usize| {
            let fits = (least..=most).contains(&length);
            if fits { Ok(()) } else { Err(ControlRefusal::Length { field, length, least, most }) }
        };
        bounded("key", self.key.len(), 1, MAX_CONTROL_KEY)?;
        bounded("body", self.kept().len(), 0, MAX_CONTROL_BODY)?;
        if self.key.starts_with(GENERATION_PREFIX) {
            return Err(ControlRefusal::Reserved { key: self.key.clone() });
        }
        let Some(generation) = &self.generation else { return Ok(()) };
        bounded("generation", generation.len(), 1, MAX_CONTROL_KEY)?;
        if generation.starts_with(GENERATION_PREFIX) {
            return Ok(());
        }
        Err(ControlRefusal::Reserved { key: generation.clone() })
    }
}
