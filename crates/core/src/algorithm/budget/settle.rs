//! The settlement of a hold: the estimate is replaced by the real use, once.

use smallvec::SmallVec;
use weir_units::{LATEST, Micros};

use super::standing::{Standing, Standings};
use super::{
    BudgetCells, BudgetVerdict, CostedLimits, HoldBounds, HoldEntry, HoldRecord, NotDecided, SettleOutcome,
    SettledCosts, Settlement,
};
use crate::algorithm::Op;

/// Settles the hold of an id, or charges the use in full where there is none.
pub fn settle<C: BudgetCells>(
    budget: &CostedLimits,
    bounds: HoldBounds,
    mut cells: C,
    used: &SettledCosts,
    now: Micros,
) -> Result<BudgetVerdict, NotDecided<C::Full>> {
    let mut all = Standings::read(budget, &cells, now.min(LATEST).0);
    let record = cells.hold().filter(|record| all.at < record.until).cloned();
    let digest = used.digest();
    if let Some(Settlement { digest: known, outcome }) = record.as_ref().and_then(|record| record.settlement)
    {
        if known != digest {
            return Err(NotDecided::OtherContents);
        }
        for (index, one) in all.each.iter_mut().enumerate() {
            let entry = record.as_ref().and_then(|record| record.entry(cells.key(index)));
            one.granted = entry.and_then(|entry| entry.granted);
            let is_left_alone = entry.is_some_and(|entry| entry.granted.is_none());
            one.charged = entry.filter(|_| !is_left_alone).map(|entry| entry.open);
        }
        all.write(&mut cells);
        return Ok(answer(&all, outcome, false));
    }
    let ended = record.as_ref().is_some_and(|record| record.has_ended(all.at));
    let outcome = match &record {
        None => SettleOutcome::Unknown,
        Some(_) if ended => SettleOutcome::Late,
        Some(_) => SettleOutcome::Settled,
    };
    let mut entries = SmallVec::new();
    for index in budget.settled() {
        let (at, key) = (all.at, cells.key(index));
        let Some(one) = all.each.get_mut(index) else { continue };
        let entry = record.as_ref().and_then(|record| record.entry(key).map(|entry| (entry, record.end)));
        settle_one(one, entry, used, at);
        let granted = one.granted;
        let open = one.charged.unwrap_or(0);
        // A settlement without an entry has charged what nobody was granted.
        let granted = if entry.is_none() { Some(0) } else { granted };
        entries.push(HoldEntry { key, granted, kept: 0, open, end: 0, mark: 0 });
    }
    all.reserve(&mut cells)?;
    let (end, question) = record.as_ref().map_or((all.at, None), |record| (record.end, record.question));
    let until = all.at + bounds.known_for.0;
    let settlement = Some(Settlement { digest, outcome });
    let record = HoldRecord { end, until, question, settlement, entries };
    cells.put_hold(record).map_err(NotDecided::Full)?;
    all.write(&mut cells);
    Ok(answer(&all, outcome, true))
}

/// Takes the part of a limit out, if it is open, and charges what is used above what is charged already.
fn settle_one(one: &mut Standing<'_>, entry: Option<(&HoldEntry, u64)>, used: &SettledCosts, at: u64) {
    let granted = entry.and_then(|(entry, _)| entry.granted);
    if entry.is_some() && granted.is_none() {
        // In shadow mode, and not admitted.
        return;
    }
    one.granted = granted;
    let units = used.of(one.limit.cost).unwrap_or(granted.unwrap_or(0));
    let mut kept = entry.map_or(0, |(entry, _)| entry.kept);
    if let Some((entry, hold_end)) = entry
        && entry.open > 0
    {
        if entry.end > at {
            one.parts_changed = entry.mark == one.parts.mark && one.parts.take(entry.end, entry.open);
        } else if entry.end < hold_end {
            kept += entry.open;
        }
    }
    one.cost = units;
    charge_forced(one, units.saturating_sub(kept));
}

/// Charges units also above the limit.
pub(super) fn charge_forced(one: &mut Standing<'_>, units: u64) {
    let algorithm = &one.limit.algorithm;
    let charged = algorithm.debited(one.reading.level, units);
    (one.charged, one.uncharged) = (Some(charged), units.saturating_sub(charged));
    one.write = algorithm.next_level(&mut one.reading, Op::Force, true, units, units);
}

fn answer(all: &Standings<'_>, outcome: SettleOutcome, applied: bool) -> BudgetVerdict {
    BudgetVerdict { outcome: Some(outcome), applied, ..all.verdict(true, Op::Force) }
}
