//! Idempotent decisions: made under an id of the caller's, with a record beside the states.
//!
//! A caller who lost an answer asks again under the same id, and is answered as allowed without a second charge. The
//! record lives until 60 s after the start of the call (of a forced debit, for 24 h), so that it outlives every wait.
//! Twins: `lua/once.lua`, and `decide` in `lua/decide.lua`.
//!
//! ```text
//!   wait left  = min(first wait, start − now)                       after a step back no longer than at first
//!   restored   = cost − (level now − level of the record now)       of a cancelled reservation, in the level's units
//! ```
//!
//! A cancelled reservation gives back only what no later one depends on. A refund would let a later caller start at a
//! time that another caller already has.

use smallvec::SmallVec;

use super::judge::log_of;
use super::{
    Algorithm, Cells, Engine, Kept, LimitVerdict, Log, MAX_LIMITS, OnceDetail, OnceRecord, Op, Reading,
    State, Verdict, VerdictSink, decide,
};
use weir_units::{CEILING, LATEST, Micros, Retry};

/// Access to the states of one decision, and to the record of its id.
pub trait RecordCells: Cells {
    /// The record of the id, if there is one.
    fn record(&self) -> Option<OnceRecord>;

    /// Stores the record. It must not be evicted before it expires.
    fn put_record(&mut self, record: OnceRecord) -> Result<(), Self::Full>;

    /// Drops the record.
    fn clear_record(&mut self);
}

impl<C: RecordCells> RecordCells for &mut C {
    fn record(&self) -> Option<OnceRecord> {
        (**self).record()
    }

    fn put_record(&mut self, record: OnceRecord) -> Result<(), Self::Full> {
        (**self).put_record(record)
    }

    fn clear_record(&mut self) {
        (**self).clear_record();
    }
}

/// Reason that a decision under an id was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOnce<F> {
    /// Another decision has this id; it had this cost.
    OtherCost(u64),
    /// No room is left.
    Full(F),
}

/// Decides `cost` under an id: as [`decide`] if the id is new, else as it was decided then. A known id with another
/// cost is refused.
pub fn decide_once<C: RecordCells>(
    limits: &[Algorithm],
    cells: C,
    op: Op,
    cost: u64,
    now: Micros,
    sink: &mut impl VerdictSink,
) -> Result<(), NotOnce<C::Full>> {
    let (cost, now) = (cost.min(CEILING), now.min(LATEST));
    let found = cells.record().filter(|record| now.0 < record.until);
    let known = found.filter(|record| record.detail != OnceDetail::Cancelled);
    match (op, known) {
        (Op::Cancel, None) => {
            let mut nothing = Uncancelled { sink, cancelled_before: found.is_some() };
            let Ok(()) = peek(limits, &cells, Op::Peek, 0, now, &mut nothing);
            Ok(())
        }
        (Op::Cancel, Some(known)) => cancel(limits, cells, known, now, sink).map_err(NotOnce::Full),
        (_, Some(known)) if known.cost != cost => Err(NotOnce::OtherCost(known.cost)),
        (_, Some(known)) => {
            let Ok(()) = peek(limits, &cells, Op::Peek, 0, now, &mut Again { sink, known, now, place: 0 });
            Ok(())
        }
        (_, None) => first(limits, cells, op, cost, now, sink).map_err(NotOnce::Full),
    }
}

/// Makes the decision, and records it if it is admitted.
fn first<C: RecordCells>(
    limits: &[Algorithm],
    mut cells: C,
    op: Op,
    cost: u64,
    now: Micros,
    sink: &mut impl VerdictSink,
) -> Result<(), C::Full> {
    // The record is stored first, because a charge without one could be made twice; and only for an admitted
    // decision, so that a denial takes no room.
    let mut plan = HeldAnswer::default();
    let Ok(()) = peek(limits, &cells, op, cost, now, &mut plan);
    let Some(admitted) = plan.verdict.filter(|verdict| verdict.allowed) else {
        return decide(limits, cells, op, cost, now, sink);
    };
    let mut record = OnceRecord::new(&admitted, op, cost, now);
    if op == Op::Force {
        let mut charged = [0; MAX_LIMITS];
        for (charged, (limit, said)) in charged.iter_mut().zip(limits.iter().zip(&plan.limits)) {
            *charged = limit.debited(said.level_before, cost);
        }
        record.detail = OnceDetail::Debited(charged);
    }
    cells.put_record(record)?;
    let mut answers = HeldAnswer::default();
    if let Err(full) = decide(limits, &mut cells, op, cost, now, &mut answers) {
        cells.clear_record();
        return Err(full);
    }
    if let ([limit], Op::Reserve { .. }) = (limits, op) {
        let reading = limit.read(cells.get(0), now.0, 0);
        let (level, at) = limit.reserved(cells.get(0), &reading, &record);
        record.detail = OnceDetail::Reserved { level, at, numbers: limit.numbers() };
        // It exists already, so there is room.
        cells.put_record(record)?;
    }
    drop(cells);
    answers.pass_on(sink);
    Ok(())
}

/// Gives back what no later reservation depends on, if the start has not come.
fn cancel<C: RecordCells>(
    limits: &[Algorithm],
    mut cells: C,
    record: OnceRecord,
    now: Micros,
    sink: &mut impl VerdictSink,
) -> Result<(), C::Full> {
    let has_started = record.wait_left(now) == Micros::ZERO;
    let ([limit], OnceDetail::Reserved { level: held, at, numbers }, false) =
        (limits, record.detail, has_started)
    else {
        let mut nothing = Uncancelled { sink, cancelled_before: false };
        let Ok(()) = peek(limits, &cells, Op::Peek, 0, now, &mut nothing);
        return Ok(());
    };
    // Stored first, as every record. It replaces the reservation's, so there is room.
    cells.put_record(OnceRecord { detail: OnceDetail::Cancelled, ..record })?;
    let mut reading = limit.read(cells.get(0), now.0, 0);
    let level_before = reading.level;
    let level = if limit.is_held() {
        cells.get(0).is_some().then_some(reading.level)
    } else {
        limit.cancelled(&reading, record.cost, (held, at)).filter(|_| numbers == limit.numbers())
    };
    if let Some(level) = level {
        cells.put(0, |state| {
            if let Some(State::Log(log)) = state {
                Log::release(log, held, record.cost);
            }
            limit.write(state, &mut reading, level);
            let reset_after = limit.reset_after(state.as_ref(), &reading);
            let mut covered = reading;
            limit.cover(state.as_ref(), &mut covered);
            limit.kept(reset_after, &covered, now)
        });
    }
    let reset_after = limit.reset_after(cells.get(0), &reading);
    limit.cover(cells.get(0), &mut reading);
    let remaining = limit.remaining(&reading);
    let verdict = LimitVerdict { cause: None, remaining, retry: Retry::Now, reset_after, level_before };
    drop(cells);
    sink.limit(verdict);
    sink.all(Verdict { now, allowed: true, fitted: true, granted: 0, wait: Micros::ZERO, applied: true });
    Ok(())
}

impl Algorithm {
    /// The parameters of its limit in a record: a reservation under others is not given back.
    fn numbers(&self) -> [u64; 4] {
        let (first, second) = match self.engine {
            Engine::Bucket(bucket) => (bucket.drain, 0),
            Engine::Interval(interval) => (interval.refill, interval.period),
            _ => (0, 0),
        };
        [self.limit, self.weight, first, second]
    }

    /// The reservation's part of a record: the level, or the number of its held start, and the time when that was
    /// true.
    fn reserved(&self, state: Option<&State>, reading: &Reading, record: &OnceRecord) -> (u64, u64) {
        let level = match self.holds() {
            None => reading.level,
            Some(_) if record.wait > 0 && record.granted > 0 => Log::held_number(log_of(state)),
            Some(_) => 0,
        };
        (level, reading.at)
    }

    /// The level after a reservation of `cost` is cancelled, if that changes anything. `then` is the level after it, and
    /// when that was.
    fn cancelled(&self, reading: &Reading, cost: u64, then: (u64, u64)) -> Option<u64> {
        let (level, at) = then;
        let level_then = match self.engine {
            Engine::Bucket(bucket) => {
                let drained = reading.at.saturating_sub(at).saturating_mul(bucket.drain);
                level.saturating_sub(drained)
            }
            Engine::Interval(interval) => {
                // The refills that have come since.
                let refills = reading.origin.saturating_sub(at).div_ceil(interval.period);
                level.saturating_sub(refills.saturating_mul(interval.refill))
            }
            _ => return None,
        };
        let later = reading.level.saturating_sub(level_then);
        let restored = cost.saturating_mul(self.weight).saturating_sub(later);
        (restored > 0 && reading.level > 0).then(|| reading.level.saturating_sub(restored))
    }
}

/// Decides without changing anything.
fn peek<C: Cells>(
    limits: &[Algorithm],
    cells: &C,
    op: Op,
    cost: u64,
    now: Micros,
    sink: &mut impl VerdictSink,
) -> Result<(), std::convert::Infallible> {
    decide(limits, ReadOnly(cells), op, cost, now, sink)
}

/// Read-only states, changed in copies.
struct ReadOnly<'c, C>(&'c C);

impl<C: Cells> Cells for ReadOnly<'_, C> {
    type Full = std::convert::Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.0.get(index)
    }

    fn phase(&self, index: usize) -> u64 {
        self.0.phase(index)
    }

    fn reserve(&mut self, _: usize) -> Result<(), Self::Full> {
        Ok(())
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        change(&mut self.0.get(index).cloned());
    }
}

/// An answer that is passed on after the states are released.
#[derive(Default)]
struct HeldAnswer {
    limits: SmallVec<[LimitVerdict; 2]>,
    verdict: Option<Verdict>,
}

impl HeldAnswer {
    fn pass_on(self, sink: &mut impl VerdictSink) {
        for limit in self.limits {
            sink.limit(limit);
        }
        if let Some(verdict) = self.verdict {
            sink.all(verdict);
        }
    }
}

impl VerdictSink for HeldAnswer {
    fn limit(&mut self, verdict: LimitVerdict) {
        self.limits.push(verdict);
    }

    fn all(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
    }
}

/// The answer to a repeated decision: as it was then, with the limits as they are now.
struct Again<'s, S> {
    sink: &'s mut S,
    known: OnceRecord,
    now: Micros,
    /// Index of the next limit.
    place: usize,
}

impl<S: VerdictSink> VerdictSink for Again<'_, S> {
    fn limit(&mut self, verdict: LimitVerdict) {
        let level_before = match self.known.detail {
            OnceDetail::Debited(charged) => charged.get(self.place).copied().unwrap_or_default(),
            _ => verdict.level_before,
        };
        self.place += 1;
        self.sink.limit(LimitVerdict { cause: None, retry: Retry::Now, level_before, ..verdict });
    }

    fn all(&mut self, verdict: Verdict) {
        let OnceRecord { fitted, granted, .. } = self.known;
        let wait = self.known.wait_left(self.now);
        self.sink.all(Verdict { now: verdict.now, allowed: true, fitted, granted, wait, applied: false });
    }
}

/// The answer to a cancellation that changes nothing.
struct Uncancelled<'s, S> {
    sink: &'s mut S,
    cancelled_before: bool,
}

impl<S: VerdictSink> VerdictSink for Uncancelled<'_, S> {
    fn limit(&mut self, verdict: LimitVerdict) {
        self.sink.limit(LimitVerdict { cause: None, retry: Retry::Now, ..verdict });
    }

    fn all(&mut self, verdict: Verdict) {
        self.sink.all(Verdict {
            allowed: true,
            fitted: true,
            granted: u64::from(self.cancelled_before),
            wait: Micros::ZERO,
            applied: false,
            ..verdict
        });
    }
}
