//! Debits, refunds and resets of limits with their own costs.

use weir_units::{LATEST, Micros};

use super::ask::is_judged;
use super::settle::charge_forced;
use super::standing::{Standing, Standings};
use super::{BudgetCells, BudgetVerdict, CallRecord, CostedLimits, NotDecided, SettledCosts};
use crate::algorithm::log::FORGET;
use crate::algorithm::{DEBIT_LASTS, MAX_LIMITS, Op};

/// Charges the limits of the costs that are named, also above them.
pub fn debit<C: BudgetCells>(
    budget: &CostedLimits,
    cells: C,
    used: &SettledCosts,
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    let all = forced(budget, &cells, used, now);
    finish(all, cells, Op::Force)
}

/// [`debit`] under an id: a repeated one charges nothing, and says what the first one charged.
pub fn debit_once<C: BudgetCells>(
    budget: &CostedLimits,
    mut cells: C,
    used: &SettledCosts,
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    let mut all = forced(budget, &cells, used, now);
    let question = used.digest();
    if let Some(known) = cells.call().filter(|record| all.now < record.until) {
        if known.question != question {
            return Err(NotDecided::OtherContents);
        }
        for (one, charged) in all.each.iter_mut().zip(known.granted) {
            (one.charged, one.uncharged, one.write) = (charged, 0, None);
        }
        all.write(&mut cells);
        return Ok(BudgetVerdict { applied: false, ..all.verdict(true, Op::Force) });
    }
    all.reserve(&mut cells)?;
    let mut granted = [None; MAX_LIMITS];
    for (granted, one) in granted.iter_mut().zip(&all.each) {
        *granted = one.charged;
    }
    let record = CallRecord { question, until: all.now + DEBIT_LASTS.0, granted };
    cells.put_call(record).map_err(NotDecided::Full)?;
    all.write(&mut cells);
    Ok(BudgetVerdict { applied: true, ..all.verdict(true, Op::Force) })
}

/// The limits as a debit leaves them.
fn forced<'l, C: BudgetCells>(
    budget: &'l CostedLimits,
    cells: &C,
    used: &SettledCosts,
    now: Micros,
) -> Standings<'l> {
    let mut all = Standings::read(budget, cells, now.min(LATEST).0);
    for (index, one) in all.each.iter_mut().enumerate() {
        let Some(units) = used.of(one.limit.cost) else { continue };
        one.cost = units;
        if is_judged(one.limit.cost, units) {
            one.judgement = one.judge(index, (cells, all.now), units);
        }
        charge_forced(one, units);
    }
    all
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
