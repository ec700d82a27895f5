//! What the short way's decisions mean for their callers.
//!
//! The short way answers with the states that it decided on. The same arithmetic that decides in memory
//! tells from them what every limit says, which costs the server nothing; and it must admit as much.

use std::slice::Iter;
use std::sync::Arc;

use redis::Value;
use smallvec::SmallVec;

use super::request::{Answer, Request};
use super::script::{garbled, number, reason_of, whole};
use crate::algorithm::{Algorithm, Cells, Kept, MAX_LIMITS, Op, State, decide};
use crate::store::{LimitSet, StoreError, Verdicts};
use crate::units::Micros;

/// Answers `requests` from `states`, one for each of their keys. `failures` begins with what failed.
pub(super) fn replay(
    requests: &[Arc<Request>],
    mut states: &[Value],
    now: Micros,
    admitted: u64,
    failures: &mut Iter<'_, Value>,
) -> Result<Vec<Answer>, StoreError> {
    let mut failure = next_failure(failures)?;
    let mut counted = 0;
    let mut answers = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let (own, others) = states.split_at_checked(request.keys().len()).ok_or_else(garbled)?;
        states = others;
        if let Some((_, why)) = failure.take_if(|(failed, _)| *failed == index) {
            answers.push(Err(why));
            failure = next_failure(failures)?;
            continue;
        }
        answers.push(Ok(verdicts(request, own, now, &mut counted)?));
    }
    // The script and this process have decided alike, or one of them is not what the other takes it for.
    if counted == admitted && failure.is_none() { Ok(answers) } else { Err(garbled()) }
}

/// The next decision that failed alone, by its place, and why.
fn next_failure(parts: &mut Iter<'_, Value>) -> Result<Option<(usize, StoreError)>, StoreError> {
    let Some(Value::Int(place)) = parts.as_slice().first() else { return Ok(None) };
    let (_, Some(Value::BulkString(reason))) = (parts.next(), parts.next()) else { return Err(garbled()) };
    let index = usize::try_from(place - 1).map_err(|_| garbled())?;
    Ok(Some((index, reason_of(&String::from_utf8_lossy(reason)))))
}

fn verdicts(
    request: &Request,
    states: &[Value],
    now: Micros,
    admitted: &mut u64,
) -> Result<Verdicts, StoreError> {
    let some: SmallVec<[Algorithm; MAX_LIMITS]>;
    let limits = if request.limits == LimitSet::ALL {
        request.strategy.algorithms()
    } else {
        some = request.algorithms().copied().collect();
        &some
    };
    let states = limits.iter().zip(states).map(|(limit, state)| restored(limit, state));
    let mut cells = Replayed(states.collect::<Result<_, _>>()?);
    let mut out = Verdicts::default();
    for &cost in &request.costs {
        let Ok(verdict) = decide(limits, &mut cells, request.op, cost, now, &mut out.limits);
        *admitted += u64::from(verdict.allowed && cost > 0 && request.op == Op::Charge);
        out.decisions.push(verdict);
    }
    Ok(out)
}

/// The state that the script read, which it has found to be one.
fn restored(limit: &Algorithm, state: &Value) -> Result<Option<State>, StoreError> {
    let packed = match state {
        Value::Nil => return Ok(None),
        Value::BulkString(packed) => packed,
        _ => return Err(garbled()),
    };
    let numbers: SmallVec<[u64; 4]> =
        packed.chunks_exact(8).map(|bytes| whole(number(bytes).into()).unwrap_or(u64::MAX)).collect();
    limit.engine().restore(&numbers).map(Some).ok_or_else(garbled)
}

/// The states of one decision.
struct Replayed(SmallVec<[Option<State>; 3]>);

impl Cells for Replayed {
    type Full = std::convert::Infallible;

    fn get(&self, index: usize) -> Option<&State> {
        self.0.get(index).and_then(Option::as_ref)
    }

    fn phase(&self, _: usize) -> u64 {
        0
    }

    fn reserve(&mut self, _: usize) -> Result<(), Self::Full> {
        Ok(())
    }

    fn put(&mut self, index: usize, change: impl FnOnce(&mut Option<State>) -> Kept) {
        if let Some(state) = self.0.get_mut(index) {
            change(state);
        }
    }
}
