//! The end of the calls about a key, also if their task ends early.

use super::line::HasKeyLine;
use super::table::KeyTable;

/// The calls about a key. However they end, nobody waits for them afterwards.
pub(super) struct KeyFlight<'t, E: HasKeyLine> {
    table: &'t KeyTable<E>,
    digest: u128,
    has_landed: bool,
}

impl<'t, E: HasKeyLine> KeyFlight<'t, E> {
    /// Begins the calls about a key of `table`.
    pub(super) fn new(table: &'t KeyTable<E>, digest: u128) -> Self {
        Self { table, digest, has_landed: false }
    }

    /// Ends them: nobody waits.
    pub(super) fn land(mut self) {
        self.has_landed = true;
    }
}

impl<E: HasKeyLine> Drop for KeyFlight<'_, E> {
    fn drop(&mut self) {
        if !self.has_landed {
            self.table.with(self.digest, |entry| entry.line().abandon());
        }
    }
}
