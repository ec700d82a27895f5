//! The denials that one worker knows: a fixed number of places, each for the latest of its keys.

use std::time::Instant;

use crate::algorithm::LimitVerdict;
use crate::store::Verdicts;
use crate::units::{Micros, Retry};

/// Denials that a worker keeps: about a megabyte. A newer one takes the place of an older one with the
/// same place, which is then asked for again; nothing else depends on it.
const PLACES: usize = 4096;

/// One denial.
pub(super) struct Known {
    /// Of its tag, before the store was asked.
    pub(super) epoch: u64,
    pub(super) received: Instant,
    pub(super) until: Instant,
    pub(super) answer: Verdicts,
}

/// Denials by the hash of their question.
pub(super) struct Table(Vec<Option<(u128, Known)>>);

impl Default for Table {
    fn default() -> Self {
        Self((0..PLACES).map(|_| None).collect())
    }
}

impl Table {
    /// The answer that is known for `key`, as it is now.
    pub(super) fn answer(&self, key: u128, epoch: u64, cost: u64, now: Instant) -> Option<Verdicts> {
        let (of, known) = self.0.get(key as usize % PLACES)?.as_ref()?;
        let holds = *of == key && known.epoch == epoch && now < known.until;
        holds.then(|| known.aged(cost, Micros::from(now.saturating_duration_since(known.received))))
    }

    pub(super) fn keep(&mut self, key: u128, known: Known) {
        if let Some(place) = self.0.get_mut(key as usize % PLACES) {
            *place = Some((key, known));
        }
    }
}

impl Known {
    /// The same answer, `age` later.
    fn aged(&self, cost: u64, age: Micros) -> Verdicts {
        let mut answer = self.answer.clone();
        for verdict in &mut answer.decisions {
            verdict.now = Micros(verdict.now.0.saturating_add(age.0));
        }
        for limit in &mut answer.limits {
            grow_older(limit, cost, age);
        }
        answer
    }
}

/// A limit whose own wait is over would admit the cost by now; another one still denies it.
fn grow_older(limit: &mut LimitVerdict, cost: u64, age: Micros) {
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
}
