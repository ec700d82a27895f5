//! Debits, refunds and resets of limits with their own costs.

use weir_units::{LATEST, Micros};

use super::ask::is_judged;
use super::settle::charge_forced;
use super::standing::{Standing, Standings};
use super::{BudgetCells, BudgetVerdict, CostedLimits, NotDecided, SettledCosts};
use crate::algorithm::Op;
use crate::algorithm::log::FORGET;

/// Charges the limits of the costs that are named, also above them.
pub fn debit<C: BudgetCells>(
    budget: &CostedLimits,
    cells: C,
    used: &SettledCosts,
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    let mut all = Standings::read(budget, &cells, now.min(LATEST).0);
    for (index, one) in all.each.iter_mut().enumerate() {
        let Some(units) = used.of(one.limit.cost) else { continue };
        one.cost = units;
        if is_judged(one.limit.cost, units) {
            one.judgement = one.judge(index, (&cells, all.now), units);
        }
        charge_forced(one, units);
    }
    finish(all, cells, Op::Force)
}

/// Gives units back to the limits that `has` names: of what is used, never of what is held.
pub fn refund<C: BudgetCells>(
    budget: &CostedLimits,
    cells: C,
    (units, has): (u64, impl Fn(usize) -> bool),
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    change(budget, cells, has, now, Op::Refund, |one| {
        one.write = one.limit.algorithm.next_level(&mut one.reading, Op::Refund, true, units, units);
    })
}

/// Empties the limits that `has` names, with what is held of them.
pub fn reset<C: BudgetCells>(
    budget: &CostedLimits,
    cells: C,
    has: impl Fn(usize) -> bool,
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    change(budget, cells, has, now, Op::Reset, |one| {
        if one.limit.algorithm.is_held() {
            one.reading.origin = FORGET;
        }
        one.write = Some(0);
        one.parts.ends.clear();
        one.parts_changed = true;
    })
}

fn change<C: BudgetCells>(
    budget: &CostedLimits,
    cells: C,
    has: impl Fn(usize) -> bool,
    now: Micros,
    op: Op,
    change: impl Fn(&mut Standing<'_>),
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    let mut all = Standings::read(budget, &cells, now.min(LATEST).0);
    for (_, one) in all.each.iter_mut().enumerate().filter(|(index, _)| has(*index)) {
        change(one);
    }
    finish(all, cells, op)
}

fn finish<C: BudgetCells>(
    mut all: Standings<'_>,
    mut cells: C,
    op: Op,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    all.reserve(&mut cells)?;
    all.write(&mut cells);
    Ok(BudgetVerdict { applied: true, ..all.verdict(true, op) })
}
