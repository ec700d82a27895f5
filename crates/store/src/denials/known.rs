//! One worker's denial cache: set-associative, with a fixed number of entries.

use std::time::Instant;

use smallvec::SmallVec;

use crate::Verdicts;
use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, BudgetLimitVerdict, BudgetVerdict, CostedLimits,
};
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::StrategyId;
use weir_units::{Micros, Retry};

/// Entries per worker: about four megabytes. If a set is full, the entry that expires first is evicted, and only
/// costs another call to the store.
const PLACES: usize = 16_384;

/// Associativity. With 1, two keys of the same flood would evict each other at every call: of 1,000 keys among 4,096
/// places every fifth did, and a flood kept a quarter of a Redis busy.
const CHOICES: usize = 4;

/// The fingerprint of a place without an entry.
const NO_ENTRY: u32 = 0;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownQuestion {
    pub(super) fields: u128,
    pub(super) strategy: StrategyId,
    /// The cost, or a digest of costs by name.
    pub(super) cost: u64,
}

pub(super) struct Known {
    /// The epoch of its keys, read before the store was asked.
    pub(super) epoch: u64,
    pub(super) received: Instant,
    pub(super) until: Instant,
    pub(super) answer: Verdicts,
}

/// A valid cache hit and its age.
pub(super) struct Aged<'a> {
    answer: &'a Verdicts,
    cost: u64,
    age: Micros,
}

pub(super) struct DenialTable {
    /// Fingerprints of the entries, by set. Most questions have no entry, and the entries are several cache lines each: those
    /// of 100,000 keys cost a twentieth of a decision in cache misses alone.
    fingerprints: Vec<[u32; CHOICES]>,
    entries: Vec<[Option<(KnownQuestion, Known)>; CHOICES]>,
}

impl Default for DenialTable {
    fn default() -> Self {
        let sets = PLACES / CHOICES;
        Self {
            fingerprints: vec![[NO_ENTRY; CHOICES]; sets],
            entries: (0..sets).map(|_| [const { None }; CHOICES]).collect(),
        }
    }
}

impl KnownQuestion {
    /// Returns the set. Mixes in the cost, so that costs of one key spread over the sets.
    fn set(&self) -> usize {
        let spread = self.cost.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (self.fields as u64 ^ spread ^ self.strategy.number()) as usize % (PLACES / CHOICES)
    }

    /// Returns the fingerprint. Other bits than those of the set; never that of no entry.
    fn fingerprint(&self) -> u32 {
        (self.fields >> 96) as u32 | 1
    }
}

impl DenialTable {
    /// Looks up a valid entry.
    pub(super) fn answer(&self, question: &KnownQuestion, epoch: u64, now: Instant) -> Option<Aged<'_>> {
        let fingerprint = question.fingerprint();
        let known = self.fingerprints.get(question.set())?;
        if !known.contains(&fingerprint) {
            return None;
        }
        let entries = self.entries.get(question.set())?;
        let (_, known) = entries.iter().flatten().find(|(of, _)| of == question)?;
        // In tests the clock may be moved back.
        let in_time = (known.received..known.until).contains(&now);
        let holds = known.epoch == epoch && in_time;
        let age = || Micros::from(now.saturating_duration_since(known.received));
        holds.then(|| Aged { answer: &known.answer, cost: question.cost, age: age() })
    }

    /// Stores a denial over the same question, in a free entry, or over the entry that expires first.
    pub(super) fn keep(&mut self, question: KnownQuestion, known: Known) {
        let set = question.set();
        let (Some(fingerprints), Some(entries)) = (self.fingerprints.get_mut(set), self.entries.get_mut(set))
        else {
            return;
        };
        let worth = |(_, entry): &(_, &mut Option<(KnownQuestion, Known)>)| match entry {
            Some((of, _)) if *of == question => (0, None),
            None => (1, None),
            Some((_, known)) => (2, Some(known.until)),
        };
        if let Some((fingerprint, entry)) = fingerprints.iter_mut().zip(entries).min_by_key(worth) {
            *fingerprint = question.fingerprint();
            *entry = Some((question, known));
        }
    }
}

impl Aged<'_> {
    #[inline]
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let verdict = self.answer.decisions.first()?;
        Some(Verdict { now: Micros(verdict.now.0.saturating_add(self.age.0)), ..*verdict })
    }

    #[inline]
    pub(super) fn limits(&self) -> impl Iterator<Item = LimitVerdict> {
        self.answer.limits.iter().map(|&limit| older(limit, self.cost, self.age))
    }
}

impl Aged<'_> {
    /// The verdict over limits with costs of their own, aged. `None` if it is about other costs with the same digest.
    pub(super) fn costs(&self, costed: &CostedLimits, asked: &Ask) -> Option<BudgetVerdict> {
        let known = self.answer.budget.as_deref()?;
        let is_same = |(limit, one): (&BudgetLimit, &BudgetLimitVerdict)| {
            asked.of(limit.cost) == AskedCost { cost: one.cost, at_least: None }
        };
        if !costed.limits.iter().zip(&known.limits).all(is_same) {
            return None;
        }
        let limit = |one: &BudgetLimitVerdict| {
            let aged = older(one.plain(), one.cost, self.age);
            let LimitVerdict { cause, remaining, retry, reset_after, .. } = aged;
            BudgetLimitVerdict { cause, remaining, retry, reset_after, ..*one }
        };
        let limits: SmallVec<[BudgetLimitVerdict; 4]> = known.limits.iter().map(limit).collect();
        let (mut retry, mut reset_after) = (Retry::Now, Micros::ZERO);
        for (limit, one) in costed.limits.iter().zip(&limits) {
            if !limit.algorithm.is_shadow() {
                (retry, reset_after) = (retry.max(one.retry), reset_after.max(one.reset_after));
            }
        }
        let now = Micros(known.now.0.saturating_add(self.age.0));
        Some(BudgetVerdict { now, retry, reset_after, limits, ..known.clone() })
    }
}

/// A limit whose own wait is over would admit the cost by now; another one still denies it.
#[inline]
fn older(mut limit: LimitVerdict, cost: u64, age: Micros) -> LimitVerdict {
    limit.reset_after = Micros(limit.reset_after.0.saturating_sub(age.0));
    if let Retry::After(wait) = limit.retry {
        limit.retry = match wait.0.checked_sub(age.0) {
            Some(0) | None => Retry::Now,
            Some(left) => Retry::After(Micros(left)),
        };
        if limit.retry == Retry::Now {
            limit.cause = None;
            limit.remaining = limit.remaining.max(cost);
        }
    }
    limit
}
