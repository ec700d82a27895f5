//! Access of the driver of costs by limit to states, parts of holds, and records.
//!
//! Parts and records lie beside the states, under the same lock and in the same budget. Their times are stored by the
//! steady clock, and a decision compares them with the wall clock: a step of that moves windows, and no end of a hold.

use std::hash::{BuildHasher as _, RandomState};

use smallvec::SmallVec;
use weir_core::algorithm::budget::{BudgetCells, CallRecord, HeldParts, HoldRecord};
use weir_core::algorithm::{Cells, Kept, MAX_LIMITS, State};
use weir_units::Micros;

use super::budget::NoRoom;
use super::cells::ShardCells;
use super::table::ShardTable;

/// Location of the parts and the records of a decision.
#[derive(Debug, Default)]
pub(super) struct CostPlace {
    pub(super) parts: SmallVec<[u128; MAX_LIMITS]>,
    /// Digests of the records of its id; 0 without an id.
    pub(super) hold: u128,
    pub(super) call: u128,
}

/// The states, parts and records of one decision. The parts and records are as the wall clock sees them.
pub(super) struct CostCells<'a, 't> {
    cells: ShardCells<'a, &'t mut ShardTable>,
    /// The table of the record of a hold, if that is another one.
    records: Option<&'t mut ShardTable>,
    place: &'a CostPlace,
    /// Distance of the wall clock from the steady one; negative if it is behind.
    ahead: i64,
    parts: SmallVec<[Option<HeldParts>; MAX_LIMITS]>,
    hold: Option<HoldRecord>,
    call: Option<CallRecord>,
    /// The keys that a decision still writes.
    reserved: usize,
}

impl<'a, 't> CostCells<'a, 't> {
    pub(super) fn read(
        cells: ShardCells<'a, &'t mut ShardTable>,
        records: Option<&'t mut ShardTable>,
        place: &'a CostPlace,
        steady: Micros,
    ) -> Self {
        let ahead = cells.stamp.now.0.wrapping_sub(steady.0).cast_signed();
        let table = &*cells.table;
        let state = |digest: u128| table.find(digest).and_then(|slot| table.get(slot));
        let parts = place.parts.iter().map(|digest| match state(*digest) {
            // The time is the wall clock's, so no part has seen a later one.
            Some(State::Parts(parts)) => Some(HeldParts { seen: 0, ..moved_parts(parts, ahead) }),
            _ => None,
        });
        let parts = parts.collect();
        let held_in = records.as_deref().unwrap_or(table);
        let hold = match held_in.find(place.hold).and_then(|slot| held_in.get(slot)) {
            Some(State::Hold(record)) => Some(moved_hold(record, ahead)),
            _ => None,
        };
        let call = match state(place.call) {
            Some(State::Call(record)) => {
                Some(CallRecord { until: moved(record.until, ahead), ..(**record).clone() })
            }
            _ => None,
        };
        Self { cells, records, place, ahead, parts, hold, call, reserved: 0 }
    }

    /// Stores a record for as long as it is known.
    fn put_record(&mut self, digest: u128, record: State, until: u64) -> Result<(), NoRoom> {
        let lasts = Micros(until.saturating_sub(self.cells.stamp.now.0));
        self.cells.put_beside(digest, (record, lasts), self.reserved)
    }
}

/// A time of one clock by another one, which is `by` ahead.
const fn moved(time: u64, by: i64) -> u64 {
    time.saturating_add_signed(by)
}

fn moved_parts(parts: &HeldParts, by: i64) -> HeldParts {
    let ends = parts.ends.iter().map(|(end, units)| (moved(*end, by), *units)).collect();
    HeldParts { ends, ..*parts }
}

fn moved_hold(record: &HoldRecord, by: i64) -> HoldRecord {
    let mut record = record.clone();
    record.end = moved(record.end, by);
    record.until = moved(record.until, by);
    for entry in &mut record.entries {
        // 0 is no time: that of an entry that is settled.
        entry.end = if entry.end == 0 { 0 } else { moved(entry.end, by) };
    }
    record
}

impl Cells for CostCells<'_, '_> {
    type Full = NoRoom;

    fn get(&self, index: usize) -> Option<&State> {
        self.cells.get(index)
    }

    fn phase(&self, index: usize) -> u64 {
        self.cells.phase(index)
    }

    fn reserve(&mut self, count: usize) -> Result<(), NoRoom> {
        // A key of parts may be new beside a state that is not.
        self.reserved = count + self.parts.iter().filter(|parts| parts.is_none()).count();
        self.cells.reserve(self.reserved)
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        self.cells.put(index, change);
    }
}

impl BudgetCells for CostCells<'_, '_> {
    fn parts(&self, index: usize) -> Option<&HeldParts> {
        self.parts.get(index)?.as_ref()
    }

    fn put_parts(&mut self, index: usize, parts: HeldParts) {
        let Some(&digest) = self.place.parts.get(index) else { return };
        let Some(last) = parts.last_end() else { return self.cells.drop_beside(digest) };
        let state = State::Parts(Box::new(moved_parts(&parts, self.ahead.wrapping_neg())));
        self.cells.put_reserved(digest, state, Micros(last.saturating_sub(self.cells.stamp.now.0)));
    }

    fn key(&self, index: usize) -> u64 {
        // The digest of its parts knows the engine, too.
        let digest = self.place.parts.get(index).copied().unwrap_or(0);
        (digest >> 64) as u64 >> 12
    }

    fn mark(&mut self) -> u64 {
        RandomState::new().hash_one(self.cells.stamp.now.0) >> 12
    }

    fn hold(&self) -> Option<&HoldRecord> {
        self.hold.as_ref()
    }

    fn put_hold(&mut self, record: HoldRecord) -> Result<(), NoRoom> {
        let (until, back) = (record.until, self.ahead.wrapping_neg());
        let state = State::Hold(Box::new(moved_hold(&record, back)));
        let Some(table) = &mut self.records else { return self.put_record(self.place.hold, state, until) };
        let ShardCells { shared, strategy, limits, at, stamp, .. } = self.cells;
        let mut slots = [None; MAX_LIMITS];
        let mut records =
            ShardCells { shared, table: &mut **table, strategy, limits, at, slots: &mut slots, stamp };
        let lasts = Micros(until.saturating_sub(stamp.now.0));
        records.put_beside(self.place.hold, (state, lasts), 0)
    }

    fn call(&self) -> Option<&CallRecord> {
        self.call.as_ref()
    }

    fn put_call(&mut self, record: CallRecord) -> Result<(), NoRoom> {
        let until = record.until;
        let record = CallRecord { until: moved(until, self.ahead.wrapping_neg()), ..record };
        self.put_record(self.place.call, State::Call(Box::new(record)), until)
    }
}
