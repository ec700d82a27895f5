//! Idempotency: markers and records beside the states, under the same lock and in the same budget.

use weir_config::WhenFull;
use weir_core::algorithm::{Cells, Kept, OnceRecord, RecordCells, State};
use weir_core::strategy::Owner;
use weir_units::Micros;

use super::SharedMemory;
use super::budget::{Budget, NoRoom};
use super::cells::ShardCells;
use super::owners::KEY_BYTES;
use super::table::{Claim, ShardTable};
use super::time::WallReading;
use crate::{REFUND_ID_LASTS, StoreError};

/// The marker of one decision, within its locked shard.
#[derive(Clone, Copy)]
pub(super) struct Marker {
    pub(super) digest: u128,
    /// Now, by the steady clock of ids.
    pub(super) steady: Micros,
}

impl Marker {
    /// True if it was set and has not expired.
    pub(super) fn is_set(self, table: &ShardTable) -> bool {
        let state = table.find(self.digest).and_then(|slot| table.get(slot));
        matches!(state, Some(State::Marker { until }) if *until > self.steady)
    }

    /// Sets it, if there is room. It counts as exhausted, so it is not evicted before its time: the decision could
    /// then be repeated.
    pub(super) fn set(
        self,
        shared: &SharedMemory,
        (table, stamp): (&mut ShardTable, WallReading),
        owner: &Owner,
    ) -> Result<(), StoreError> {
        let until = Micros(self.steady.0.saturating_add(REFUND_ID_LASTS.0));
        let expires = shared.time.second_after(stamp, REFUND_ID_LASTS);
        let state = State::Marker { until };
        if let Some(slot) = table.find(self.digest) {
            *table.state_mut(slot) = Some(state);
            table.expires(slot, expires, true);
            return Ok(());
        }
        let budget = &shared.budget;
        let claim = Claim {
            owner: budget.owners().number_of_ids(owner),
            second: shared.time.second_begun(stamp),
            evict: shared.when_full == WhenFull::Evict,
            keep: &[],
        };
        if !table.has_room_for_id(KEY_BYTES, claim, budget) {
            return Err(budget.refuse(NoRoom::Ids));
        }
        if !table.reserve(1, claim, budget) {
            return Err(budget.refuse(NoRoom::Budget));
        }
        table.insert(self.digest, state, (expires, true), claim.owner, budget);
        Ok(())
    }

    /// Removes it: the decision failed.
    pub(super) fn clear(self, table: &mut ShardTable, budget: &Budget) {
        if let Some(slot) = table.find(self.digest) {
            table.remove(slot, budget);
        }
    }
}

/// The states of a decision, and the record of its id.
pub(super) struct OnceCells<'a, 't> {
    pub(super) cells: ShardCells<'a, &'t mut ShardTable>,
    /// Digest of the record's key.
    pub(super) digest: u128,
    /// Now, by the steady clock of ids.
    pub(super) steady: Micros,
}

impl OnceCells<'_, '_> {
    /// Converts a record's start and end between clocks. They are stored by the steady clock, and a decision compares
    /// them with the wall clock. The record's copy of a limit's state is not converted, because states follow the
    /// wall clock.
    fn moved(record: OnceRecord, from: Micros, to: Micros) -> OnceRecord {
        let moved = |time: u64| time.saturating_add_signed(to.0.wrapping_sub(from.0).cast_signed());
        OnceRecord { start: moved(record.start), until: moved(record.until), ..record }
    }
}

impl Cells for OnceCells<'_, '_> {
    type Full = NoRoom;

    fn get(&self, index: usize) -> Option<&State> {
        self.cells.get(index)
    }

    fn phase(&self, index: usize) -> u64 {
        self.cells.phase(index)
    }

    fn reserve(&mut self, count: usize) -> Result<(), NoRoom> {
        self.cells.reserve(count)
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        self.cells.put(index, change);
    }
}

impl RecordCells for OnceCells<'_, '_> {
    fn record(&self) -> Option<OnceRecord> {
        let table = &*self.cells.table;
        match table.find(self.digest).and_then(|slot| table.get(slot)) {
            Some(State::Record(record)) => Some(Self::moved(**record, self.steady, self.cells.stamp.now)),
            _ => None,
        }
    }

    fn put_record(&mut self, record: OnceRecord) -> Result<(), NoRoom> {
        let now = self.cells.stamp.now;
        let lasts = Micros(record.until.saturating_sub(now.0));
        let record = Self::moved(record, now, self.steady);
        self.cells.put_beside(self.digest, (State::Record(Box::new(record)), lasts), 0)
    }

    fn clear_record(&mut self) {
        self.cells.drop_beside(self.digest);
    }
}
