//! One decision over one or more limits: judge every limit, then charge all of them or none.
//!
//! This is the whole contract, written once for all engines; `lua/decide.lua` is its twin, name by
//! name and step by step. An engine only says what its state means now (its level), how long a part
//! of that level takes to leave, and what to store.
//!
//! ```text
//!   fits       ⇔ cost ≤ limit  ∧  level + cost · weight ≤ capacity       (capacity = limit · weight)
//!   remaining  = ⌊(capacity − level) / weight⌋
//!   retry      = wait(level + cost · weight − capacity)                  never, if cost > limit
//!   reset      = wait(level)
//! ```
//!
//! A log that counts denied attempts answers as it will stand with this attempt in it: a peek does too,
//! though it records nothing, because it asks what would happen.

use smallvec::SmallVec;

use super::{Algorithm, Cause, Engine, LimitVerdict, MAX_LIMITS, Op, Reading, State, Verdict};
use crate::units::{CEILING, LATEST, Micros, Retry};

/// Where the states of one decision's limits are kept while it is made.
pub trait Cells {
    /// Why a new state could not be kept.
    type Full;

    /// The state of limit `index`, if there is one.
    fn get(&self, index: usize) -> Option<&State>;

    /// Where the key of limit `index` stands in a spread window: any number below 2^52, always the same.
    /// Asked only where [`Algorithm::is_spread`].
    fn phase(&self, index: usize) -> u64;

    /// Makes sure that `count` states that are absent can be kept, and that those that are there can
    /// grow; called before the first write of a decision that charges.
    fn reserve(&mut self, count: usize) -> Result<(), Self::Full>;

    /// Changes the state of limit `index`; `change` says how long the result matters.
    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept);
}

/// What a store needs to know of a state it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// From now until the state is as good as absent, by the store's clock.
    pub lasts: Micros,
    /// Whether nothing remains: dropping such a state would let its holder start anew.
    pub exhausted: bool,
}

/// What one limit says before anything is written.
struct Judgement {
    reading: Reading,
    cause: Option<Cause>,
    retry: Retry,
    /// The level to write, if any.
    write: Option<u64>,
    /// How long until fresh, once it is written.
    reset_after: Option<Micros>,
}

impl Judgement {
    #[inline(always)]
    const fn new(reading: Reading, cause: Option<Cause>, retry: Retry) -> Self {
        Self { reading, cause, retry, write: None, reset_after: None }
    }
}

/// Decides `cost` over `limits` whose states are in `cells`, and appends what each limit says to
/// `out`, in order. All limits are charged or none is; where `cells` has no room, none is.
pub fn decide<C: Cells>(
    limits: &[Algorithm],
    cells: &mut C,
    op: Op,
    cost: u64,
    now: Micros,
    out: &mut impl Extend<LimitVerdict>,
) -> Result<Verdict, C::Full> {
    let (cost, now) = (cost.min(CEILING), now.min(LATEST));
    let mut asked = Asked { op, cost, now, granted: cost, wait: 0 };
    match limits {
        // Nearly every decision is about one limit, and so need not keep a list.
        [only] => {
            let judged = &mut [asked.judge(only, 0, cells)];
            asked.settle(std::slice::from_ref(only), judged, cells, out)
        }
        _ => {
            let judge = |(index, limit)| asked.judge(limit, index, cells);
            let mut judged: SmallVec<[Judgement; MAX_LIMITS]> =
                limits.iter().enumerate().map(judge).collect();
            asked.settle(limits, &mut judged, cells, out)
        }
    }
}

/// What is asked, and what it comes to.
struct Asked {
    op: Op,
    cost: u64,
    now: Micros,
    granted: u64,
    wait: u64,
}

impl Asked {
    #[inline(always)]
    fn judge(&mut self, limit: &Algorithm, index: usize, cells: &impl Cells) -> Judgement {
        let phase = if limit.is_spread() { cells.phase(index) } else { 0 };
        let state = cells.get(index);
        let judgement = limit.judge(state, limit.read(state, self.now.0, phase), self.cost);
        match self.op {
            Op::AtMost => {
                let (judgement, granted) = limit.judge_at_most(state, judgement, self.cost);
                self.granted = granted;
                judgement
            }
            Op::Reserve { max_wait } => {
                let (judgement, wait) = limit.judge_reserve(state, judgement, self.cost, max_wait.0);
                self.wait = wait;
                judgement
            }
            _ => judgement,
        }
    }

    /// Charges all limits or none, now that each is judged.
    #[inline(always)]
    fn settle<C: Cells>(
        self,
        limits: &[Algorithm],
        judged: &mut [Judgement],
        cells: &mut C,
        out: &mut impl Extend<LimitVerdict>,
    ) -> Result<Verdict, C::Full> {
        let Self { op, cost, now, .. } = self;
        let fitted = judged.iter().all(|judgement| judgement.cause.is_none());
        let allowed = fitted || matches!(op, Op::Force | Op::Refund | Op::Reset);
        let granted = if allowed { self.granted } else { 0 };
        let (mut grows, mut absent) = (false, 0);
        for (index, (limit, judgement)) in limits.iter().zip(&mut *judged).enumerate() {
            judgement.write = limit.next_level(&mut judgement.reading, op, allowed, cost, granted);
            if judgement.write.is_some_and(|level| level > judgement.reading.level) {
                grows = true;
                absent += usize::from(cells.get(index).is_none());
            }
        }
        if grows {
            cells.reserve(absent)?;
        }
        for (index, (limit, judgement)) in limits.iter().zip(&mut *judged).enumerate() {
            if let Some(level) = judgement.write {
                cells.put(index, |state| {
                    limit.write(state, &mut judgement.reading, level);
                    let reset_after = limit.reset_after(state.as_ref(), &judgement.reading);
                    judgement.reset_after = Some(reset_after);
                    limit.kept(reset_after, &judgement.reading, now)
                });
            }
        }
        out.extend(limits.iter().zip(&*judged).enumerate().map(|(index, (limit, judgement))| LimitVerdict {
            cause: judgement.cause,
            remaining: limit.remaining_after(&judgement.reading, op, cost),
            retry: if allowed { Retry::Now } else { judgement.retry },
            reset_after: match judgement.reset_after {
                Some(written) => written,
                None => limit.reset_after(cells.get(index), &judgement.reading),
            },
        }));
        Ok(Verdict { now, allowed, fitted, granted, wait: Micros(self.wait) })
    }
}

impl Algorithm {
    /// Whether `cost` fits on top of the level, and how long until it does.
    fn judge(&self, state: Option<&State>, reading: Reading, cost: u64) -> Judgement {
        if cost > self.limit {
            return Judgement::new(reading, Some(Cause::Never), Retry::Never);
        }
        let wanted = reading.level + cost * self.weight;
        let gap = if cost > 0 { self.gap(&reading) } else { 0 };
        let cause = match (wanted > self.capacity(), gap > 0) {
            (true, _) => Some(Cause::Count),
            (false, true) => Some(Cause::MinGap),
            (false, false) => None,
        };
        let mut retry = Retry::Now;
        if cause.is_some() {
            let recorded = self.attempt(cost);
            let excess = (wanted + recorded).saturating_sub(self.capacity());
            let count = if excess > 0 { self.wait(state, &reading, excess) } else { 0 };
            retry = Retry::After(Micros(count.max(if recorded > 0 { self.min_gap() } else { gap })));
        }
        Judgement::new(reading, cause, retry)
    }

    /// As much of `cost` as fits; denied only if not even 1 does.
    fn judge_at_most(&self, state: Option<&State>, judged: Judgement, cost: u64) -> (Judgement, u64) {
        let granted = cost.min(self.remaining(&judged.reading));
        if granted > 0 {
            return (Judgement { cause: None, retry: Retry::Now, ..judged }, granted);
        }
        (self.judge(state, judged.reading, cost.min(1)), 0)
    }

    /// A place in the queue: fits if its wait is within `max_wait`.
    fn judge_reserve(
        &self,
        state: Option<&State>,
        judged: Judgement,
        cost: u64,
        max_wait: u64,
    ) -> (Judgement, u64) {
        let Retry::After(Micros(wait)) = judged.retry else { return (judged, 0) };
        let beyond = (judged.reading.level + cost * self.weight).saturating_sub(self.ceiling);
        let excess = self.wait(state, &judged.reading, beyond).max(wait.saturating_sub(max_wait));
        if excess == 0 {
            return (Judgement { cause: None, retry: Retry::Now, ..judged }, wait);
        }
        (Judgement { retry: Retry::After(Micros(excess)), ..judged }, 0)
    }

    /// The level to write, if the decision changes this limit's state at all.
    fn next_level(
        &self,
        reading: &mut Reading,
        op: Op,
        allowed: bool,
        cost: u64,
        granted: u64,
    ) -> Option<u64> {
        let before = reading.level;
        let add = |units: u64| before.saturating_add(units.saturating_mul(self.weight)).min(self.ceiling);
        match op {
            Op::Peek => None,
            Op::Reset => Some(0),
            Op::Refund if cost == 0 || reading.level == 0 => None,
            Op::Refund => Some(self.refund(reading, cost)),
            _ if cost == 0 => None,
            // More would be dropped again, and a level at its ceiling could record no attempt after it.
            _ if allowed && self.attempt(granted) > 0 => Some(add(self.attempt(granted))),
            _ if allowed => Some(add(granted)),
            Op::Charge if self.count_denied => Some(add(cost.min(self.limit + 1))),
            // The one write a denial may make: a state from a clock that has since gone back.
            _ if reading.shift > 0 => Some(reading.level),
            _ => None,
        }
    }

    /// Counted from the store's own now, which is behind the state's time after a step back.
    fn kept(&self, reset_after: Micros, reading: &Reading, now: Micros) -> Kept {
        let behind = reading.at.saturating_sub(now.0);
        let room = self.capacity().saturating_sub(reading.level);
        Kept { lasts: Micros(behind + reset_after.0), exhausted: room < self.weight }
    }

    fn remaining(&self, reading: &Reading) -> u64 {
        self.capacity().saturating_sub(reading.level) / self.weight
    }

    /// What remains of a log that counts denied attempts is told with the attempt of a peek counted.
    fn remaining_after(&self, reading: &Reading, op: Op, cost: u64) -> u64 {
        let peeked = if op == Op::Peek { self.attempt(cost) } else { 0 };
        self.remaining(reading).saturating_sub(peeked)
    }

    /// What a log that counts denied attempts records of one, admitted or not; 0 for any other limit.
    fn attempt(&self, cost: u64) -> u64 {
        match self.engine {
            Engine::Log(_) if self.count_denied => cost.min(self.limit + 1),
            _ => 0,
        }
    }

    /// The shortest time between two charges.
    const fn min_gap(&self) -> u64 {
        match self.engine {
            Engine::Log(log) => log.min_gap,
            _ => 0,
        }
    }

    /// What is left of the shortest time since the newest charge.
    fn gap(&self, reading: &Reading) -> u64 {
        if reading.level == 0 {
            return 0;
        }
        self.min_gap().saturating_sub(reading.at - reading.origin)
    }

    fn reset_after(&self, state: Option<&State>, reading: &Reading) -> Micros {
        if reading.level == 0 {
            return Micros::ZERO;
        }
        Micros(self.wait(state, reading, reading.level))
    }
}
