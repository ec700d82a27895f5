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
//! Where calls pay afterwards, `fits ⇔ cost ≤ limit ∧ level ≤ capacity`, and the capacity is the burst.
//!
//! A limit in shadow mode is judged too, but it neither denies nor makes a call wait, and it is charged only where it
//! would have admitted what all others admit.
//!
//! A log that counts denied attempts answers as it will stand with this attempt in it: a peek does too,
//! though it records nothing, because it asks what would happen.

use smallvec::SmallVec;

use super::judge::Judgement;
use super::log::FORGET;
use super::{
    Algorithm, Cells, Engine, Kept, LimitVerdict, MAX_LIMITS, Op, Reading, State, UNLIMITED_DEBT, Verdict,
    VerdictSink,
};
use weir_units::{CEILING, LATEST, Micros, Retry};

/// Intermediate result for one limit.
struct Judged<'l> {
    limit: &'l Algorithm,
    reading: Reading,
    /// The level before anything is written.
    level: u64,
    judgement: Judgement,
    write: Option<u64>,
    /// Time for which until fresh, once all is written.
    reset_after: Micros,
}

/// Decides `cost` over `limits` whose states are in `cells`, and gives the answer. All limits are charged or
/// none is; where `cells` has no room, none is, and there is no answer.
///
/// `cells` is dropped as soon as the last state is written, so that one that holds a lock lets others go on
/// while the answer is made.
pub fn decide<C: Cells>(
    limits: &[Algorithm],
    cells: C,
    op: Op,
    cost: u64,
    now: Micros,
    sink: &mut impl VerdictSink,
) -> Result<(), C::Full> {
    let (cost, now) = (cost.min(CEILING), now.min(LATEST));
    let mut asked = DecisionParts { op, cost, now, granted: cost, wait: 0 };
    match limits {
        // Nearly all decisions have one limit, and so need no list.
        [only] => {
            let judged = &mut [asked.judge(only, 0, &cells)];
            asked.settle(judged, cells, sink)
        }
        _ => {
            let judge = |(index, limit)| asked.judge(limit, index, &cells);
            let mut judged: SmallVec<[Judged<'_>; MAX_LIMITS]> =
                limits.iter().enumerate().map(judge).collect();
            asked.settle(&mut judged, cells, sink)
        }
    }
}

/// The question, and the decision so far.
struct DecisionParts {
    op: Op,
    cost: u64,
    now: Micros,
    granted: u64,
    wait: u64,
}

impl DecisionParts {
    #[inline(always)]
    fn judge<'l>(&mut self, limit: &'l Algorithm, index: usize, cells: &impl Cells) -> Judged<'l> {
        let phase = if limit.is_spread() { cells.phase(index) } else { 0 };
        let state = cells.get(index);
        let reading = limit.read(state, self.now.0, phase);
        let mut level = reading.level;
        let mut judgement = limit.judge(state, &reading, self.cost);
        match self.op {
            Op::AtMost if !limit.is_shadow() => {
                let grantable;
                (judgement, grantable) = limit.judge_at_most(state, &reading, self.cost);
                self.granted = self.granted.min(grantable);
            }
            Op::Reserve { max_wait } => {
                (judgement, self.wait) =
                    limit.judge_reserve(state, &reading, judgement, self.cost, max_wait.0);
            }
            Op::Count { parts } => level = limit.newest(state, &reading, parts),
            _ => {}
        }
        if !limit.is_shadow() {
            self.wait = self.wait.max(limit.pace(&reading));
        }
        Judged { limit, level, reading, judgement, write: None, reset_after: Micros::ZERO }
    }

    /// Charges all limits or none, now that each is judged.
    #[inline(always)]
    fn settle<C: Cells>(
        self,
        judged: &mut [Judged<'_>],
        mut cells: C,
        sink: &mut impl VerdictSink,
    ) -> Result<(), C::Full> {
        let Self { op, cost, now, .. } = self;
        let fitted = judged.iter().all(|one| one.judgement.cause.is_none() || one.limit.is_shadow());
        let forced = matches!(op, Op::Force | Op::Refund | Op::Reset);
        let allowed = fitted || forced;
        let granted = if allowed { self.granted } else { 0 };
        let wait = Micros(if fitted && !forced { self.wait } else { 0 });
        let (mut grows, mut absent) = (false, 0);
        for (index, one) in judged.iter_mut().enumerate() {
            if one.limit.is_held() {
                match op {
                    Op::Reset => one.reading.origin = FORGET,
                    Op::Reserve { .. } if wait > Micros::ZERO && granted > 0 => {
                        one.reading.origin = one.reading.at + wait.0;
                    }
                    _ => {}
                }
            }
            let charges =
                allowed && (!one.limit.is_shadow() || self.shadow_fits(one, cells.get(index), granted));
            one.write = one.limit.next_level(&mut one.reading, op, charges, cost, granted);
            if one.write.is_some_and(|level| level > one.reading.level) {
                grows = true;
                absent += usize::from(cells.get(index).is_none());
            }
        }
        if grows {
            cells.reserve(absent)?;
        }
        for (index, one) in judged.iter_mut().enumerate() {
            let Judged { limit, reading, reset_after, .. } = one;
            match one.write {
                None => {
                    let state = cells.get(index);
                    *reset_after = limit.reset_after(state, reading);
                    limit.cover(state, reading);
                }
                Some(level) => cells.put(index, |state| {
                    limit.write(state, reading, level);
                    *reset_after = limit.reset_after(state.as_ref(), reading);
                    limit.cover(state.as_ref(), reading);
                    limit.kept(*reset_after, reading, now)
                }),
            }
        }
        drop(cells);
        let granted = if op == Op::Force { most_debited(judged, cost) } else { granted };
        for Judged { limit, reading, level, judgement, reset_after, .. } in judged {
            sink.limit(LimitVerdict {
                cause: judgement.cause,
                remaining: limit.remaining_after(reading, op, cost),
                retry: if allowed || limit.is_shadow() { Retry::Now } else { judgement.retry },
                reset_after: *reset_after,
                level_before: *level,
            });
        }
        sink.all(Verdict { now, allowed, fitted, granted, wait, applied: allowed });
        Ok(())
    }

    /// True if a limit in shadow mode would admit the granted cost. Forced changes apply to it too.
    #[cold]
    fn shadow_fits(&self, one: &mut Judged<'_>, state: Option<&State>, granted: u64) -> bool {
        if self.op == Op::AtMost {
            one.judgement = one.limit.judge(state, &one.reading, granted);
        }
        matches!(self.op, Op::Force | Op::Refund | Op::Reset) || one.judgement.cause.is_none()
    }
}

/// The most that a forced debit charges to an enforced limit.
#[cold]
fn most_debited(judged: &[Judged<'_>], cost: u64) -> u64 {
    let enforced = judged.iter().filter(|one| !one.limit.is_shadow());
    enforced.map(|one| one.limit.debited(one.level, cost)).max().unwrap_or_default()
}

impl Algorithm {
    /// The level to write, if the decision changes this limit's state at all.
    #[inline]
    pub(super) fn next_level(
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
            // The path of nearly every decision.
            Op::Charge if self.is_plain && allowed && cost > 0 => Some(add(granted)),
            Op::Peek | Op::Cancel | Op::Count { .. } => None,
            Op::Reset => Some(0),
            Op::Refund if cost == 0 || reading.level == 0 => None,
            Op::Refund => Some(self.refund(reading, cost)),
            _ if cost == 0 => None,
            _ if op == Op::Force && self.debt_level != UNLIMITED_DEBT => {
                let charged = self.debited(before, cost);
                (charged > 0).then(|| before + charged * self.weight)
            }
            _ if allowed && let Some(warm_up) = self.warms_up() => Some(warm_up.spend(reading, granted)),
            // More would be dropped again, and a level at its ceiling could record no attempt after it.
            _ if allowed && self.attempt(granted) > 0 => Some(add(self.attempt(granted))),
            _ if allowed => Some(add(granted)),
            Op::Charge if self.count_denied => Some(add(cost.min(self.limit + 1))),
            // The only write of a denial: a state from a clock that has since gone back.
            _ if reading.shift > 0 || self.is_held() && reading.span > 0 => Some(reading.level),
            _ => None,
        }
    }

    /// Use in the newest parts of a bucketed window; 0 for other limits.
    fn newest(&self, state: Option<&State>, reading: &Reading, parts: u64) -> u64 {
        match (&self.engine, state) {
            (Engine::Slots(slots), Some(State::Slots(state))) => slots.newest(Some(state), reading, parts),
            _ => 0,
        }
    }

    /// Returns the time for which a state is kept after it is fresh, and decides as none.
    #[inline]
    const fn stays(&self) -> u64 {
        match &self.engine {
            Engine::Slots(slots) => slots.stays(),
            _ => 0,
        }
    }

    /// Expiry, from the store's own now, which is behind the state's time after a step back.
    pub(super) fn kept(&self, reset_after: Micros, reading: &Reading, now: Micros) -> Kept {
        let behind = reading.at.saturating_sub(now.0);
        let room = self.capacity().saturating_sub(reading.level);
        // A limit that warms up denies as long as it has a backlog.
        let exhausted = if self.warms_up().is_some() { reading.origin > 0 } else { room < self.weight };
        Kept { lasts: Micros(behind + reset_after.0 + self.stays()), exhausted }
    }
}
