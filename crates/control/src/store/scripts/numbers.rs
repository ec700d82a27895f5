//! The parameters of a script of live control, which `lua/control/start.lua` reads.

use weir_store::doubles;
use weir_units::Micros;

use crate::model::{
    ControlPut, ENDED_KEPT, MAX_CONTROL_CHANGES, MAX_CONTROL_ENTRIES, MAX_CONTROL_RECORDS,
    MAX_CONTROL_VERSION, MAX_DROPPED, MAX_MERGED_RECORDS, MAX_POLLED_BYTES, MAX_POLLED_CHANGES,
    MAX_POLLED_RECORDS,
};

doubles! {
    /// The parameters of a script.
    ControlNumbers {
        /// The time, or -1 to use the server's clock.
        now,
        /// The greatest version that the writer knows.
        known,
        ended_kept,
        most_entries,
        most_records,
        most_changes,
        most_dropped,
        most_polled,
        most_bytes,
        most_together,
    }
}

doubles! {
    /// The parameters of one entry of a put.
    EntryNumbers {
        /// -1 for never.
        expires_after,
        deletes,
        expects,
    }
}

/// The doubles of these scripts.
#[cfg(test)]
pub(crate) const DOUBLES: &[&[&str]] = &[ControlNumbers::NAMES, EntryNumbers::NAMES];

impl ControlNumbers {
    /// The numbers of scripts but for a put.
    pub(super) fn of_all() -> Self {
        Self {
            now: -1.0,
            known: 0.0,
            ended_kept: ENDED_KEPT.0 as f64,
            most_entries: MAX_CONTROL_ENTRIES as f64,
            most_records: MAX_MERGED_RECORDS as f64,
            most_changes: MAX_CONTROL_CHANGES as f64,
            most_dropped: MAX_DROPPED as f64,
            most_polled: MAX_POLLED_CHANGES as f64,
            most_bytes: MAX_POLLED_BYTES as f64,
            most_together: MAX_POLLED_RECORDS as f64,
        }
    }

    /// The numbers of a put by a writer that knows this version.
    pub(super) fn of_put(known: u64) -> Self {
        Self { known: known as f64, most_records: MAX_CONTROL_RECORDS as f64, ..Self::of_all() }
    }

    /// Sets the time, if one is given.
    pub(super) fn with_time(self, now: Option<Micros>) -> Self {
        now.map_or(self, |now| Self { now: now.0 as f64, ..self })
    }
}

impl EntryNumbers {
    /// The numbers of one entry, packed.
    pub(super) fn packed(put: &ControlPut) -> Vec<u8> {
        let mut packed = Vec::with_capacity(size_of::<Self>());
        let numbers = Self {
            expires_after: put.expires_after.map_or(-1.0, |after| after.0.min(MAX_CONTROL_VERSION) as f64),
            deletes: f64::from(u8::from(put.body.is_none())),
            expects: f64::from(u8::from(put.expect.is_some())),
        };
        numbers.put(&mut packed);
        packed
    }
}
