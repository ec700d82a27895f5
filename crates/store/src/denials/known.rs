//! One worker's denial cache: set-associative, with a fixed number of entries.

use std::ops::Range;
use std::time::Instant;

use crate::Verdicts;
use weir_core::algorithm::{LimitVerdict, Verdict};
use weir_core::strategy::StrategyId;
use weir_units::{Micros, Retry};

/// Entries per worker: about four megabytes. If a set is full, the entry that expires first is evicted, and only
/// costs another call to the store.
const PLACES: usize = 16_384;

/// Associativity. With 1, two keys of the same flood would evict each other at every call: of 1,000 keys among 4,096
/// places every fifth did, and a flood kept a quarter of a Redis busy.
const CHOICES: usize = 4;

/// Key of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownQuestion {
    /// The hash of the fields of its keys.
    pub(super) fields: u128,
    pub(super) strategy: StrategyId,
    pub(super) cost: u64,
}

/// A cached denial.
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

/// Entries by set.
pub(super) struct DenialTable(Vec<Option<(KnownQuestion, Known)>>);

impl Default for DenialTable {
    fn default() -> Self {
        Self((0..PLACES).map(|_| None).collect())
    }
}

impl KnownQuestion {
    /// First entry of its set. Mixes in the cost, so that costs of one key spread over the sets.
    fn place(&self) -> usize {
        let spread = self.cost.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (self.fields as u64 ^ spread ^ self.strategy.number()) as usize % (PLACES / CHOICES) * CHOICES
    }

    fn places(&self) -> Range<usize> {
        self.place()..self.place() + CHOICES
    }
}

impl DenialTable {
    /// Looks up a valid entry.
    pub(super) fn answer(&self, question: &KnownQuestion, epoch: u64, now: Instant) -> Option<Aged<'_>> {
        let (_, known) = self.0.get(question.places())?.iter().flatten().find(|(of, _)| of == question)?;
        // In tests the clock may be moved back.
        let in_time = (known.received..known.until).contains(&now);
        let holds = known.epoch == epoch && in_time;
        let age = || Micros::from(now.saturating_duration_since(known.received));
        holds.then(|| Aged { answer: &known.answer, cost: question.cost, age: age() })
    }

    /// Stores a denial over the same question, in a free entry, or over the entry that expires first.
    pub(super) fn keep(&mut self, question: KnownQuestion, known: Known) {
        let places = self.0.get_mut(question.places()).into_iter().flatten();
        let worth = |place: &&mut Option<(KnownQuestion, Known)>| match place {
            Some((of, _)) if *of == question => (0, None),
            None => (1, None),
            Some((_, known)) => (2, Some(known.until)),
        };
        if let Some(place) = places.min_by_key(worth) {
            *place = Some((question, known));
        }
    }
}

impl Aged<'_> {
    /// The verdict, aged.
    #[inline]
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let verdict = self.answer.decisions.first()?;
        Some(Verdict { now: Micros(verdict.now.0.saturating_add(self.age.0)), ..*verdict })
    }

    /// The limits, aged.
    #[inline]
    pub(super) fn limits(&self) -> impl Iterator<Item = LimitVerdict> {
        self.answer.limits.iter().map(|&limit| older(limit, self.cost, self.age))
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
