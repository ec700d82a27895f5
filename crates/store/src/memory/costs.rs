//! Decisions over limits with costs of their own.

use parking_lot::MutexGuard;
use weir_core::algorithm::Op;
use weir_core::algorithm::budget::{
    BudgetVerdict, NotDecided, ask, debit, debit_once, refund, reset, settle,
};
use weir_core::key::{self, Operation};

use super::SharedMemory;
use super::budget::NoRoom;
use super::cells::ShardCells;
use super::cost_cells::{CostCells, CostPlace};
use super::once::Marker;
use super::place::{StatePlace, shard_of};
use super::table::ShardTable;
use super::time::WallReading;
use crate::{BudgetDecision, BudgetOp, Decision, LimitSet, StoreError};

/// A decision, and where its keys are.
struct LocatedCosts<'a> {
    decision: &'a BudgetDecision<'a>,
    states: StatePlace,
    beside: CostPlace,
    /// The shard of the record of a hold. That of a single limit is chosen by the tag, because it is found whatever the
    /// algorithm of the limit became; the state is where it is without holds.
    records: usize,
    /// The marker of a refund under an id.
    refund: u128,
}

/// Locked tables, and the time of the decision.
struct LockedCosts<'t> {
    table: &'t mut ShardTable,
    /// The table of the record of a hold, if that is another one.
    records: Option<&'t mut ShardTable>,
    stamp: WallReading,
}

impl SharedMemory {
    pub(super) fn decide_costs(&self, decision: &BudgetDecision<'_>) -> Result<BudgetVerdict, StoreError> {
        let located = self.locate_costs(decision);
        let mut stamp = self.time.stamp();
        let (mut table, mut records) = self.lock_both(located.states.shard, located.records);
        self.date(&mut table, &mut stamp);
        if let Some(records) = &mut records {
            self.date(records, &mut stamp);
            // The clock may have stepped once more.
            self.date(&mut table, &mut stamp);
        }
        let locked = LockedCosts { table: &mut table, records: records.as_deref_mut(), stamp };
        let (costed, now) = (decision.costed, stamp.now);
        let decided = match decision.op {
            BudgetOp::Ask(asked) => self.with_cells(&located, locked, |cells| ask(costed, cells, asked, now)),
            BudgetOp::Settle(used) => {
                let Some(bounds) = costed.hold else { return Err(StoreError::Unsupported("a settlement")) };
                self.with_cells(&located, locked, |cells| settle(costed, bounds, cells, used, now))
            }
            BudgetOp::Debit(used) if decision.id.is_empty() => {
                self.with_cells(&located, locked, |cells| debit(costed, cells, used, now))
            }
            BudgetOp::Debit(used) => {
                self.with_cells(&located, locked, |cells| debit_once(costed, cells, used, now))
            }
            BudgetOp::Refund(units, limits) => return self.refund(&located, locked, (units, limits)),
            BudgetOp::Reset(limits) => self
                .with_cells(&located, locked, |cells| reset(costed, cells, |index| limits.has(index), now)),
        };
        decided.map_err(|why| self.not_decided(why))
    }

    /// Locks two shards, which may be one. In their order, so that no two threads wait for each other.
    fn lock_both(
        &self,
        one: usize,
        other: usize,
    ) -> (MutexGuard<'_, ShardTable>, Option<MutexGuard<'_, ShardTable>>) {
        let lock = |shard: usize| self.shards[shard].lock();
        if one > other {
            let second = lock(other);
            return (lock(one), Some(second));
        }
        (lock(one), (one < other).then(|| lock(other)))
    }

    fn locate_costs<'a>(&self, decision: &'a BudgetDecision<'a>) -> LocatedCosts<'a> {
        let BudgetDecision { strategy, subject, id, .. } = *decision;
        let mut states = StatePlace::default();
        let all = Decision::new(strategy, subject, Op::Charge, &[0]);
        self.locate(|locator| locator.locate(&all, &mut states));
        self.locate(|locator| {
            let parts =
                |index| locator.digest(|text| key::write_parts_identity(text, strategy, index, &subject));
            let parts = (0..strategy.limits().len()).map(parts).collect();
            let mut beside = CostPlace { parts, ..CostPlace::default() };
            let (mut refund, mut records) = (0, states.shard);
            if !id.is_empty() {
                // A hold is found under its own tag only, as in Redis.
                beside.hold = locator.digest(|text| {
                    key::write_hold_name(text, strategy, &subject, id);
                    let name = text.len() as u32;
                    key::write_tag(text, strategy, &subject);
                    text.extend_from_slice(&name.to_le_bytes());
                });
                let operation = match decision.op {
                    BudgetOp::Debit(_) => Operation::Debit,
                    _ => Operation::Charge,
                };
                beside.call =
                    locator.digest(|text| key::write_record_name(text, operation, strategy, &subject, id));
                refund = locator.digest(|text| key::write_refund_name(text, strategy, &subject, id));
                if has_hold_record(decision) && strategy.limits().len() == 1 {
                    records = shard_of(locator.digest(|text| key::write_tag(text, strategy, &subject)));
                }
            }
            LocatedCosts { decision, states, beside, records, refund }
        })
    }

    fn with_cells<T>(
        &self,
        located: &LocatedCosts<'_>,
        LockedCosts { table, records, stamp }: LockedCosts<'_>,
        decide: impl FnOnce(CostCells<'_, '_>) -> T,
    ) -> T {
        let mut slots = located.states.slots(table);
        let strategy = located.decision.strategy;
        let limits = strategy.algorithms();
        let at = &located.states;
        let cells = ShardCells { shared: self, table, strategy, limits, at, slots: &mut slots, stamp };
        decide(CostCells::read(cells, records, &located.beside, self.time.steady()))
    }

    /// A refund, which an id makes idempotent.
    fn refund(
        &self,
        located: &LocatedCosts<'_>,
        LockedCosts { table, stamp, .. }: LockedCosts<'_>,
        (units, limits): (u64, LimitSet),
    ) -> Result<BudgetVerdict, StoreError> {
        let decision = located.decision;
        let marker =
            (!decision.id.is_empty()).then(|| Marker { digest: located.refund, steady: self.time.steady() });
        let is_known = marker.is_some_and(|marker| marker.is_set(table));
        if let Some(marker) = marker.filter(|_| !is_known) {
            marker.set(self, (&mut *table, stamp), decision.strategy.owner())?;
        }
        let has = |index| !is_known && limits.has(index);
        let locked = LockedCosts { table: &mut *table, records: None, stamp };
        let given =
            self.with_cells(located, locked, |cells| refund(decision.costed, cells, (units, has), stamp.now));
        match given {
            Ok(verdict) => Ok(BudgetVerdict { applied: !is_known, ..verdict }),
            Err(why) => {
                if let Some(marker) = marker.filter(|_| !is_known) {
                    marker.clear(table, &self.budget);
                }
                Err(self.not_decided(why))
            }
        }
    }

    fn not_decided(&self, why: NotDecided<NoRoom>) -> StoreError {
        match why {
            NotDecided::OtherContents => StoreError::OtherContents,
            NotDecided::TooManyEnds => StoreError::TooManyEnds,
            NotDecided::Full(why) => self.budget.refuse(why),
        }
    }
}

/// True if the decision reads or writes the record of a hold.
fn has_hold_record(decision: &BudgetDecision<'_>) -> bool {
    match decision.op {
        BudgetOp::Ask(asked) => asked.hold_for.is_some(),
        BudgetOp::Settle(_) => true,
        BudgetOp::Debit(_) | BudgetOp::Refund(..) | BudgetOp::Reset(_) => false,
    }
}
