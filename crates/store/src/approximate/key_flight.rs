//! The end of the calls about a key, also if their task ends early.

use super::table::CountTable;

/// The calls about a key. However they end, nobody waits for them afterwards.
pub(super) struct KeyFlight<'t> {
    table: &'t CountTable,
    digest: u128,
    has_landed: bool,
}

impl<'t> KeyFlight<'t> {
    /// Begins the calls about a key of `table`.
    pub(super) fn new(table: &'t CountTable, digest: u128) -> Self {
        Self { table, digest, has_landed: false }
    }

    /// Ends them: nobody waits.
    pub(super) fn land(mut self) {
        self.has_landed = true;
    }
}

impl Drop for KeyFlight<'_> {
    fn drop(&mut self) {
        if !self.has_landed {
            self.table.with(self.digest, |entry| entry.line.abandon());
        }
    }
}
