//! The data of a server at its own time. Expired keys are removed when they are read.

use std::sync::Arc;

use super::error_text::SimulatedError;
use super::stored::{SimulatedData, StoredKey, StoredKind, StoredValue};
use weir_units::Micros;

/// The data, and the time of the command at hand.
#[derive(Debug, Default)]
pub(super) struct Keyspace {
    pub(super) data: SimulatedData,
    pub(super) now: Micros,
}

impl Keyspace {
    pub(super) fn now_ms(&self) -> i64 {
        i64::try_from(self.now.0 / 1_000).unwrap_or(i64::MAX)
    }

    /// The key, unless it is absent or has expired.
    pub(super) fn live(&mut self, key: &[u8]) -> Option<&mut StoredKey> {
        let now = self.now_ms();
        let has_expired = self.data.keys.get(key)?.expires_at.is_some_and(|at| now > at);
        if has_expired {
            self.data.keys.remove(key);
            return None;
        }
        self.data.keys.get_mut(key)
    }

    /// A value to be read.
    pub(super) fn read<T: StoredKind>(&mut self, key: &[u8]) -> Result<Option<&T>, SimulatedError> {
        let Some(stored) = self.live(key) else { return Ok(None) };
        T::get(&stored.value).map(Some).ok_or(SimulatedError::WRONG_TYPE)
    }

    /// A value to be changed, if there is one. The key goes if nothing of it is left.
    pub(super) fn edit<T: StoredKind + Clone, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, SimulatedError> {
        let Some(stored) = self.live(key) else { return Ok(None) };
        // A value of another type is not copied.
        T::get(&stored.value).ok_or(SimulatedError::WRONG_TYPE)?;
        let value = T::get_mut(Arc::make_mut(&mut stored.value)).ok_or(SimulatedError::WRONG_TYPE)?;
        let result = change(value);
        if value.is_gone() {
            self.data.keys.remove(key);
        }
        Ok(Some(result))
    }

    /// A value to be changed, made if it is absent.
    pub(super) fn write<T: StoredKind + Clone, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, SimulatedError> {
        if self.live(key).is_none() {
            self.put(key, T::default().wrapped(), None);
        }
        self.edit(key, change)?.ok_or(SimulatedError::WRONG_TYPE)
    }

    /// Replaces whatever the key holds.
    pub(super) fn put(&mut self, key: &[u8], value: StoredValue, expires_at: Option<i64>) {
        self.data.keys.insert(key.to_vec(), StoredKey { value: Arc::new(value), expires_at });
    }

    /// Returns whether there was such a key.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        self.live(key).is_some() && self.data.keys.remove(key).is_some()
    }
}
