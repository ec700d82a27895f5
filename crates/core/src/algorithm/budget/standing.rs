//! One limit within a decision: as it was read, and what is to be written.

use smallvec::SmallVec;
use weir_units::{Micros, Retry};

use super::{
    BudgetCells, BudgetLimit, BudgetLimitVerdict, BudgetVerdict, CostedLimits, HeldParts, MAX_LIMITS,
};
use crate::algorithm::judge::Judgement;
use crate::algorithm::{Op, Reading};

/// All limits of a decision, and its time.
pub(super) struct Standings<'l> {
    pub(super) each: SmallVec<[Standing<'l>; MAX_LIMITS]>,
    /// The store's time.
    pub(super) now: u64,
    /// The latest time that the parts have seen.
    pub(super) at: u64,
}

pub(super) struct Standing<'l> {
    pub(super) limit: &'l BudgetLimit,
    pub(super) reading: Reading,
    pub(super) level_before: u64,
    pub(super) parts: HeldParts,
    pub(super) judgement: Judgement,
    pub(super) cost: u64,
    pub(super) granted: Option<u64>,
    pub(super) charged: Option<u64>,
    /// The units above `max_debt`.
    pub(super) uncharged: u64,
    pub(super) write: Option<u64>,
    pub(super) parts_changed: bool,
    pub(super) adds_part: bool,
    pub(super) reset_after: Micros,
}

impl<'l> Standings<'l> {
    pub(super) fn read<C: BudgetCells>(budget: &'l CostedLimits, cells: &C, now: u64) -> Self {
        let known = |index: usize| cells.parts(index).filter(|parts| parts.is_known(now));
        let seen = (0..budget.limits.len()).filter_map(known).map(|parts| parts.seen).max();
        let at = seen.unwrap_or(0).max(now);
        let each = budget.limits.iter().enumerate().map(|(index, limit)| {
            let phase = if limit.algorithm.is_spread() { cells.phase(index) } else { 0 };
            let reading = limit.algorithm.read(cells.get(index), now, phase);
            Standing {
                limit,
                reading,
                level_before: reading.level,
                parts: known(index).map(|parts| parts.clone().live(at)).unwrap_or_default(),
                judgement: Judgement::FITS,
                cost: 0,
                granted: None,
                charged: None,
                uncharged: 0,
                write: None,
                parts_changed: false,
                adds_part: false,
                reset_after: Micros::ZERO,
            }
        });
        Self { each: each.collect(), now, at }
    }

    /// The answer, after everything is written; what is missing says nothing happened.
    pub(super) fn verdict(&self, allowed: bool, op: Op) -> BudgetVerdict {
        let limits: SmallVec<[BudgetLimitVerdict; 4]> =
            self.each.iter().map(|one| one.verdict(allowed, op)).collect();
        let enforced = || {
            let pairs = self.each.iter().zip(limits.iter());
            pairs.filter(|(one, _)| !one.is_shadow()).map(|(_, limit): (_, &BudgetLimitVerdict)| limit)
        };
        let retry = enforced().fold(Retry::Now, |longest, limit| longest.max(limit.retry));
        let reset_after = enforced().map(|limit| limit.reset_after).max().unwrap_or(Micros::ZERO);
        BudgetVerdict {
            now: Micros(self.now),
            allowed,
            fitted: self.each.iter().all(|one| one.judgement.cause.is_none()),
            applied: allowed,
            wait: Micros::ZERO,
            held_for: None,
            outcome: None,
            retry,
            reset_after,
            limits,
        }
    }
}

impl Standing<'_> {
    pub(super) const fn is_shadow(&self) -> bool {
        self.limit.algorithm.is_shadow()
    }

    pub(super) fn held_level(&self) -> u64 {
        self.parts.units().saturating_mul(self.limit.algorithm.weight())
    }

    /// Judges units beside what is used and held.
    pub(super) fn judge<C: BudgetCells>(
        &self,
        index: usize,
        (cells, now): (&C, u64),
        units: u64,
    ) -> Judgement {
        let (algorithm, state) = (&self.limit.algorithm, cells.get(index));
        let held = self.held_level();
        if held == 0 || units > algorithm.limit() {
            return algorithm.judge(state, &self.reading, units);
        }
        let (level, weight) = (self.reading.level, algorithm.weight());
        // Units that were held under another weight may weigh more than any level.
        let missing = |held: u64| {
            let wanted = (level + units * weight).saturating_add(held.saturating_mul(weight));
            wanted.saturating_sub(algorithm.capacity())
        };
        let wait = |excess| algorithm.wait(state, &self.reading, excess);
        let fits = missing(self.parts.units()) == 0;
        Judgement::after(if fits { 0 } else { self.parts.wait(missing, (level, now), wait) })
    }

    /// The largest cost that would pass.
    pub(super) fn remaining(&self) -> u64 {
        let algorithm = &self.limit.algorithm;
        match self.held_level() {
            0 => algorithm.remaining(&self.reading),
            held => {
                let taken = self.reading.level.saturating_add(held);
                algorithm.capacity().saturating_sub(taken) / algorithm.weight()
            }
        }
    }

    fn verdict(&self, allowed: bool, op: Op) -> BudgetLimitVerdict {
        let algorithm = &self.limit.algorithm;
        let remaining = match self.parts.ends.is_empty() {
            true => algorithm.remaining_after(&self.reading, op, self.cost),
            false => self.remaining(),
        };
        let mark = self.limit.near_level();
        let level = self.reading.level;
        BudgetLimitVerdict {
            cause: self.judgement.cause,
            cost: self.cost,
            granted: self.granted,
            charged: self.charged,
            uncharged: self.uncharged,
            remaining,
            retry: if allowed || self.is_shadow() { Retry::Now } else { self.judgement.retry },
            reset_after: self.reset_after,
            held: self.parts.units(),
            near: mark.map(|mark| level.saturating_add(self.held_level()) >= mark),
            crossed_near: mark
                .is_some_and(|mark| self.write.is_some() && self.level_before < mark && level >= mark),
            level_before: self.level_before,
        }
    }
}
