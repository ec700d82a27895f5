//! A change that an operator asks for, and why a store refuses it.

use std::collections::BTreeSet;

use weir_units::Micros;

use super::record::ControlPosition;
use super::{GENERATION_PREFIX, MAX_CONTROL_BODY, MAX_CONTROL_KEY, MAX_PUT_BYTES, MAX_PUT_TOGETHER};

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPut {
    /// The entry's key.
    pub key: Box<str>,
    /// The change that must have written the entry; [`ControlPosition::NONE`] if there must be none in force.
    pub expect: Option<ControlPosition>,
    /// The random id of this change. A put that is repeated under its id is answered as before.
    pub change: u64,
    /// Lifetime of the entry, from the store's time on.
    pub expires_after: Option<Micros>,
    /// The new body; `None` deletes the entry.
    pub body: Option<Box<[u8]>>,
    /// Body of the tombstone if the entry is deleted, such as the name of the caller.
    pub tombstone: Box<[u8]>,
    /// The key of a generation, which gets the version of this change in the same step.
    pub generation: Option<Box<str>>,
}

/// Reason of a refused change. Nothing was changed.
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
    /// Two changes of one put are of the same entry.
    #[error("`{key}` is changed twice in one call")]
    Twice {
        /// The entry's key.
        key: Box<str>,
    },
    /// One put has too many changes, or none.
    #[error("there are {count} changes in one call: it must have 1 to {MAX_PUT_TOGETHER}")]
    Count {
        /// Number of changes.
        count: usize,
    },
    /// The entry to delete does not exist.
    #[error("there is no such entry")]
    Missing,
    /// A field has a wrong length.
    #[error("`{field}` has {length} bytes, and must have {least} to {most}")]
    Length {
        /// The field.
        field: &'static str,
        /// Length in bytes.
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

/// Reason why one of several changes was refused. None of them was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPut {
    /// The index of the change.
    pub place: usize,
    /// Reason of the refusal.
    pub refusal: ControlRefusal,
}

impl RefusedPut {
    pub(super) fn new(place: usize, refusal: ControlRefusal) -> Self {
        Self { place, refusal }
    }
}

/// Checks the changes of one put: each of them, their common id, their distinct keys, and the bounds of the whole.
pub fn check_puts(puts: &[ControlPut]) -> Result<(), RefusedPut> {
    let count = puts.len();
    if !(1..=MAX_PUT_TOGETHER).contains(&count) {
        return Err(RefusedPut::new(0, ControlRefusal::Count { count }));
    }
    let (mut keys, mut bytes) = (BTreeSet::new(), 0);
    for (place, put) in puts.iter().enumerate() {
        put.check().map_err(|refusal| RefusedPut::new(place, refusal))?;
        for key in std::iter::once(&put.key).chain(&put.generation) {
            if !keys.insert(key) {
                return Err(RefusedPut::new(place, ControlRefusal::Twice { key: key.clone() }));
            }
        }
        bytes += put.key.len() + put.kept().len();
    }
    let (length, most) = (bytes, MAX_PUT_BYTES);
    let refusal = ControlRefusal::Length { field: "all keys and bodies", length, least: 0, most };
    if bytes > most { Err(RefusedPut::new(0, refusal)) } else { Ok(()) }
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
