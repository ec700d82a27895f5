//! A question: a charge, a peek or a hold.

use smallvec::SmallVec;
use weir_units::{LATEST, Micros};

use super::standing::{Standing, Standings};
use super::{
    Ask, AskedCost, BudgetCells, BudgetVerdict, CallRecord, CostedLimits, HoldBounds, HoldEntry, HoldRecord,
    LimitCost, MAX_COST_NAMES, MAX_LIMITS, NotDecided,
};
use crate::algorithm::judge::Judgement;
use crate::algorithm::{Op, RECORD_LASTS};

/// Decides a question. A hold is decided only where the strategy has holds; elsewhere it is a plain charge.
pub fn ask<C: BudgetCells>(
    budget: &CostedLimits,
    mut cells: C,
    asked: &Ask,
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    let mut all = Standings::read(budget, &cells, now.min(LATEST).0);
    if let Some(known) = known(&mut all, &mut cells, asked)? {
        return Ok(known);
    }
    for (index, one) in all.each.iter_mut().enumerate() {
        let AskedCost { cost, at_least } = asked.of(one.limit.cost);
        one.cost = cost;
        if is_judged(one.limit.cost, cost) {
            one.judgement = one.judge(index, (&cells, all.now), at_least.unwrap_or(cost));
        }
    }
    let allowed = all.each.iter().all(|one| one.judgement.cause.is_none() || one.is_shadow());
    let op = if asked.peek { Op::Peek } else { Op::Charge };
    let wait =
        all.each.iter().filter(|one| !one.is_shadow()).map(|one| one.limit.algorithm.pace(&one.reading));
    let wait = Micros(if allowed { wait.max().unwrap_or(0) } else { 0 });
    if allowed {
        grant(&mut all, &cells, asked);
    }
    let mut held_for = None;
    match (budget.hold, asked.hold_for) {
        _ if asked.peek => {}
        (Some(bounds), Some(hold_for)) if allowed => {
            let end = hold(&mut all, &mut cells, asked, (bounds, hold_for))?;
            held_for = Some(Micros(end.saturating_sub(all.now)));
        }
        _ => charge(&mut all, &mut cells, asked, allowed, wait)?,
    }
    all.write(&mut cells);
    Ok(BudgetVerdict { applied: allowed && !asked.peek, wait, held_for, ..all.verdict(allowed, op) })
}

/// True unless it is a named cost of 0.
pub(super) const fn is_judged(limit: LimitCost, cost: u64) -> bool {
    cost > 0 || !matches!(limit, LimitCost::Named(_))
}

/// Grants each cost, and judges limits in shadow mode with it.
fn grant<C: BudgetCells>(all: &mut Standings<'_>, cells: &C, asked: &Ask) {
    let now = all.now;
    let granted: SmallVec<[u64; MAX_COST_NAMES]> = asked
        .costs
        .iter()
        .enumerate()
        .map(|(name, cost)| {
            let takes = |one: &&Standing<'_>| one.limit.cost == LimitCost::Named(name) && !one.is_shadow();
            let fits = all.each.iter().filter(takes).map(Standing::remaining).min();
            match cost.at_least {
                Some(_) => cost.cost.min(fits.unwrap_or(u64::MAX)),
                None => cost.cost,
            }
        })
        .collect();
    for (index, one) in all.each.iter_mut().enumerate() {
        let units = match one.limit.cost {
            LimitCost::Named(name) => granted.get(name).copied().unwrap_or(0),
            LimitCost::Request | LimitCost::Fixed(_) => one.cost,
        };
        if one.is_shadow() && is_judged(one.limit.cost, units) {
            one.judgement = one.judge(index, (cells, now), units);
        }
        one.granted = one.judgement.cause.is_none().then_some(units);
    }
}

/// Charges what is granted, and remembers it under the id.
fn charge<C: BudgetCells>(
    all: &mut Standings<'_>,
    cells: &mut C,
    asked: &Ask,
    allowed: bool,
    wait: Micros,
) -> Result<(), NotDecided<C::Full>> {
    for one in &mut all.each {
        charge_one(one, allowed);
    }
    all.reserve(cells)?;
    if asked.has_id && allowed {
        let mut granted = [None; MAX_LIMITS];
        for (granted, one) in granted.iter_mut().zip(&all.each) {
            *granted = one.granted;
        }
        let until = all.now + wait.0 + RECORD_LASTS.0;
        let record = CallRecord { question: asked.digest(), until, granted };
        cells.put_call(record).map_err(NotDecided::Full)?;
    }
    Ok(())
}

fn charge_one(one: &mut Standing<'_>, allowed: bool) {
    let units = one.granted.unwrap_or(0);
    if allowed && one.granted.is_none() || !is_judged(one.limit.cost, one.cost) {
        return;
    }
    one.write = one.limit.algorithm.next_level(&mut one.reading, Op::Charge, allowed, one.cost, units);
}

/// Holds what is granted; returns the end of the hold.
fn hold<C: BudgetCells>(
    all: &mut Standings<'_>,
    cells: &mut C,
    asked: &Ask,
    (bounds, hold_for): (HoldBounds, Micros),
) -> Result<u64, NotDecided<C::Full>> {
    let (at, mut entries) = (all.at, SmallVec::new());
    let hold_end = bounds.round_up(at + hold_for.0);
    for (index, one) in all.each.iter_mut().enumerate() {
        if !one.limit.holds() {
            charge_one(one, true);
        }
        if one.limit.is_fixed() {
            continue;
        }
        let units = one.granted.unwrap_or(0);
        let mut entry = HoldEntry {
            key: cells.key(index),
            granted: one.granted,
            kept: units,
            open: 0,
            end: hold_end,
            mark: 0,
        };
        if one.limit.holds() {
            let phase = if one.limit.algorithm.is_spread() { cells.phase(index) } else { 0 };
            (entry.kept, entry.open) = (0, units);
            entry.end = one.limit.end(cells.get(index), (at, phase), &bounds, hold_end);
            if units > 0 {
                if one.parts.ends.is_empty() {
                    one.parts.mark = cells.mark();
                }
                one.parts.add(entry.end, units);
                (one.parts_changed, one.adds_part) = (true, true);
            }
            entry.mark = one.parts.mark;
        }
        entries.push(entry);
    }
    all.reserve(cells)?;
    let until = hold_end + bounds.known_for.0;
    let question = Some(asked.digest());
    let record = HoldRecord { end: hold_end, until, question, settlement: None, entries };
    cells.put_hold(record).map_err(NotDecided::Full)?;
    Ok(hold_end)
}

/// The answer to a question whose id is known.
fn known<C: BudgetCells>(
    all: &mut Standings<'_>,
    cells: &mut C,
    asked: &Ask,
) -> Result<Option<BudgetVerdict>, NotDecided<C::Full>> {
    let mut held_for = None;
    if asked.hold_for.is_some() {
        let Some(record) = cells.hold().filter(|record| all.at < record.until) else { return Ok(None) };
        let is_open = record.settlement.is_none() && !record.has_ended(all.at);
        if !is_open || record.question != Some(asked.digest()) {
            return Err(NotDecided::OtherContents);
        }
        held_for = Some(Micros(record.end.saturating_sub(all.now)));
        for (index, one) in all.each.iter_mut().enumerate() {
            one.granted = match one.limit.cost {
                LimitCost::Fixed(cost) => Some(cost),
                _ => record.entry(cells.key(index)).and_then(|entry| entry.granted),
            };
        }
    } else if asked.has_id {
        let Some(record) = cells.call().filter(|record| all.now < record.until) else { return Ok(None) };
        if record.question != asked.digest() {
            return Err(NotDecided::OtherContents);
        }
        for (one, granted) in all.each.iter_mut().zip(record.granted) {
            one.granted = granted;
        }
    } else {
        return Ok(None);
    }
    for one in &mut all.each {
        one.cost = asked.of(one.limit.cost).cost;
        one.judgement = Judgement::FITS;
    }
    all.write(cells);
    Ok(Some(BudgetVerdict { applied: false, held_for, ..all.verdict(true, Op::Charge) }))
}
