//! Cells that do one thing wrong.

use std::convert::Infallible;

use weir_core::algorithm::budget::{BudgetCells, CallRecord, HeldParts, HoldRecord, SettleOutcome};
use weir_core::algorithm::{Cells, Kept, State};

use super::super::rows::world::{MOST_AHEAD, StepCells};

/// The planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The record is dropped by the settlement.
    RecordEnds,
    /// No mark tells parts that a reset removed from later ones.
    NoMark,
    /// A record does not tell keys of other attributes apart.
    NoKey,
    /// HeldParts are dropped with the first of them.
    PartsEndWithTheFirst,
    /// The record has an end that is not rounded.
    EndNotRounded,
    /// A part lasts on after its window.
    PartOutlivesItsWindow,
    /// Charges that are made at once are not noted.
    NothingKept,
    /// A settlement without a hold charges nothing.
    UnknownIsFree,
    /// A settlement after the end of its hold charges nothing.
    LateIsFree,
    /// A question under a settled id is a new one.
    SettledIsAsked,
    /// A named cost of 0 is judged. It is planted in the limits.
    ZeroIsJudged,
    /// Parts do not tell the latest time that they have seen.
    NoSeen,
    /// A time far ahead of the clock is believed.
    AnySeen,
    /// Waits and `held_for` count from T. It is planted in the answers.
    WaitsFromSeen,
}

impl Fault {
    /// The faults that only a step of the clock or a failover shows.
    pub const OF_STEPS: [Self; 4] = [Self::NoSeen, Self::AnySeen, Self::WaitsFromSeen, Self::NoMark];

    pub const ALL: [Self; 11] = [
        Self::RecordEnds,
        Self::NoMark,
        Self::NoKey,
        Self::PartsEndWithTheFirst,
        Self::EndNotRounded,
        Self::PartOutlivesItsWindow,
        Self::NothingKept,
        Self::UnknownIsFree,
        Self::LateIsFree,
        Self::SettledIsAsked,
        Self::ZeroIsJudged,
    ];
}

/// The cells of a step, with a fault.
pub struct FaultyCells<'w> {
    cells: StepCells<'w>,
    fault: Fault,
    /// The parts of the limits, as the fault shows them.
    parts: Vec<Option<HeldParts>>,
    /// The end of the window of limit 1.
    window_end: u64,
    /// True for a settlement.
    settles: bool,
}

impl<'w> FaultyCells<'w> {
    /// The cells of a step at `now`, of so many limits.
    pub fn new(cells: StepCells<'w>, (fault, settles): (Fault, bool), limits: usize, now: u64) -> Self {
        let shown = |parts: &HeldParts| match fault {
            Fault::NoSeen => HeldParts { seen: 0, ..parts.clone() },
            Fault::AnySeen => HeldParts { seen: parts.seen.min(now + MOST_AHEAD), ..parts.clone() },
            _ => parts.clone(),
        };
        let parts = (0..limits).map(|index| cells.parts(index).map(shown)).collect();
        let window_end = now - now % 60_000_000 + 60_000_000;
        Self { cells, fault, parts, window_end, settles }
    }

    /// True if the settlement charges nothing that should be charged.
    fn is_free(&self) -> bool {
        let settlement = self.cells.hold().and_then(|record| record.settlement).filter(|_| self.settles);
        settlement.is_some_and(|settlement| match self.fault {
            Fault::UnknownIsFree => settlement.outcome == SettleOutcome::Unknown,
            Fault::LateIsFree => settlement.outcome == SettleOutcome::Late,
            _ => false,
        })
    }
}

impl Cells for FaultyCells<'_> {
    type Full = Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.cells.get(index)
    }

    fn phase(&self, index: usize) -> u64 {
        self.cells.phase(index)
    }

    fn reserve(&mut self, count: usize) -> Result<(), Infallible> {
        self.cells.reserve(count)
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        if self.is_free() {
            let mut dropped = self.cells.get(index).cloned();
            change(&mut dropped);
            return;
        }
        self.cells.put(index, change);
    }
}

impl BudgetCells for FaultyCells<'_> {
    fn parts(&self, index: usize) -> Option<&HeldParts> {
        self.parts[index].as_ref()
    }

    fn put_parts(&mut self, index: usize, mut parts: HeldParts) {
        match self.fault {
            Fault::PartsEndWithTheFirst => parts.ends.truncate(1),
            Fault::PartOutlivesItsWindow if index == 1 => {
                for (end, _) in &mut parts.ends {
                    *end += if *end == self.window_end { 60_000_000 } else { 0 };
                }
            }
            _ => {}
        }
        self.cells.put_parts(index, parts);
    }

    fn key(&self, index: usize) -> u64 {
        if self.fault == Fault::NoKey { index as u64 } else { self.cells.key(index) }
    }

    fn mark(&mut self) -> u64 {
        if self.fault == Fault::NoMark { 1 } else { self.cells.mark() }
    }

    fn hold(&self) -> Option<&HoldRecord> {
        let forgets = match self.fault {
            Fault::RecordEnds => true,
            Fault::SettledIsAsked => !self.settles,
            _ => false,
        };
        self.cells.hold().filter(|record| !forgets || record.settlement.is_none())
    }

    fn put_hold(&mut self, mut record: HoldRecord) -> Result<(), Infallible> {
        match self.fault {
            Fault::EndNotRounded => record.end -= 3_000_000,
            Fault::NothingKept => record.entries.iter_mut().for_each(|entry| entry.kept = 0),
            _ => {}
        }
        self.cells.put_hold(record)
    }

    fn call(&self) -> Option<&CallRecord> {
        self.cells.call()
    }

    fn put_call(&mut self, record: CallRecord) -> Result<(), Infallible> {
        self.cells.put_call(record)
    }
}
